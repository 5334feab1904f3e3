"""Pruning: what goes is decided by the domain; here it is made so that nothing kept breaks."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import islice

from holdfast.application.housekeeping import write_keyframe
from holdfast.application.kit import Kit
from holdfast.application.loading import caption_of
from holdfast.application.reading import Reader
from holdfast.application.resolve import living
from holdfast.application.restore import Restorer
from holdfast.application.survey import survey
from holdfast.domain.annotation import NOTED_EVENT, read_annotation
from holdfast.domain.errors import UNUSABLE, CheckpointConflictError, CheckpointError
from holdfast.domain.record import Entry, KeyframeEntry, Removal
from holdfast.domain.retention import RetentionPolicy, Selection, removal, select

#: So many that can be restored stay, like two stay of an undamaged workflow.
_SPARED = 2


@dataclass(frozen=True, slots=True)
class PruneResult:
    """What pruning removed, or would remove; `int()` counts the checkpoints."""

    #: Sequences, ascending.
    removed: tuple[int, ...]
    freed_bytes: int
    dry_run: bool = False

    def __int__(self) -> int:
        return len(self.removed)


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes, and how many bytes that gives back at least."""

    removal: Removal
    freed_bytes: int

    def done(self, freed_bytes: int) -> PruneResult:
        """Answer what came of it, where it was carried out."""
        return PruneResult(self.removal.sequences, freed_bytes)


def plan_prune(kit: Kit, workflow_id: str, policy: RetentionPolicy) -> Plan:
    """Decide what to remove from a workflow without touching anything."""
    entries, keyframes = list(kit.store.entries(workflow_id)), kit.store.keyframes(workflow_id)
    selection, _ = _select(kit, workflow_id, entries, keyframes, policy)
    return _plan(entries, keyframes, selection.keep)


def plan_shown(kit: Kit, workflow_id: str, policy: RetentionPolicy, shown: Collection[int]) -> Plan:
    """Work out what goes with just those checkpoints that somebody was shown.

    Raises:
        CheckpointConflictError: not all of them may go any more.
    """
    entries, keyframes = list(kit.store.entries(workflow_id)), kit.store.keyframes(workflow_id)
    selection, _ = _select(kit, workflow_id, entries, keyframes, policy)
    if not selection.keep or not set(shown).issubset(selection.remove):
        raise CheckpointConflictError(
            "what would go is not what was shown any more",
            place=workflow_id,
            hint="Look at it again: somebody pinned, released or removed something meanwhile.",
        )
    # What has come since, and what has grown old enough since, stays until the next time.
    return _plan(entries, keyframes, {*selection.keep, *selection.remove}.difference(shown))


def plan_delete(kit: Kit, workflow_id: str, sequence: int) -> Plan:
    """Work out what goes with one checkpoint."""
    entries, keyframes = list(kit.store.entries(workflow_id)), kit.store.keyframes(workflow_id)
    keep = {entry.sequence for entry in entries if not entry.pruned} - {sequence}
    if keep:
        return _plan(entries, keyframes, keep)
    return _everything(entries, keyframes, (sequence,))


def plan_tombstone(kit: Kit, workflow_id: str, sequence: int) -> Plan:
    """Work out what goes with one checkpoint at first: the bytes of the only one are left for `plan_rest`."""
    is_only = all(entry.sequence == sequence for entry in living(kit.store, workflow_id))
    return Plan(Removal((sequence,)), 0) if is_only else plan_delete(kit, workflow_id, sequence)


def plan_rest(kit: Kit, workflow_id: str, sequence: int) -> Plan:
    """Work out what is left of a workflow whose last checkpoint was removed; nothing if it has one again."""
    is_alive = next(living(kit.store, workflow_id), None) is not None
    return Plan(Removal(()), 0) if is_alive else plan_delete(kit, workflow_id, sequence)


def plan_keep(kit: Kit, workflow_id: str, keep: Collection[int], through: int | None) -> Plan:
    """Work out what goes if just these checkpoints are kept, and those after one."""
    entries, keyframes = list(kit.store.entries(workflow_id)), kit.store.keyframes(workflow_id)
    later = {entry.sequence for entry in entries if through is not None and entry.sequence > through}
    return _plan(entries, keyframes, later.union(keep))


def plan_tombstones(kit: Kit, workflow_id: str) -> Plan:
    """Work out the removal of every checkpoint of a workflow, without its bytes."""
    entries = kit.store.entries(workflow_id)
    return Plan(Removal(tuple(entry.sequence for entry in entries if not entry.pruned)), 0)


def plan_erasure(kit: Kit, workflow_id: str) -> Plan:
    """Work out what goes if nothing of a workflow may stay but the tombstones that all of it has become.

    Raises:
        CheckpointConflictError: it has a checkpoint again, that others may be going on from.
    """
    entries, keyframes = list(kit.store.entries(workflow_id)), kit.store.keyframes(workflow_id)
    if not all(entry.pruned for entry in entries):
        raise CheckpointConflictError(
            "the workflow went on while it was erased", place=workflow_id, hint="Stop it, and erase it again."
        )
    plan = _everything(entries, keyframes, ())
    through = kit.store.head(workflow_id).event_seq
    return Plan(replace(plan.removal, events_through=through, erases=True), plan.freed_bytes)


def _everything(entries: list[Entry], keyframes: list[KeyframeEntry], sequences: tuple[int, ...]) -> Plan:
    groups = {entry.group for entry in entries} | {keyframe.sequence for keyframe in keyframes}
    blobs = {sha256 for entry in entries for sha256 in entry.blobs}
    blobs.update(sha256 for keyframe in keyframes for sha256 in keyframe.blobs)
    everything = Removal(sequences, tuple(sorted(groups)), blobs=tuple(sorted(blobs)))
    return Plan(everything, _freed(entries, keyframes, everything))


def secure(kit: Kit, workflow_id: str, policy: RetentionPolicy) -> None:
    """Write a keyframe of the newest checkpoint if everything that stays would hang on one."""
    entries, keyframes = list(kit.store.entries(workflow_id)), kit.store.keyframes(workflow_id)
    selection, spared = _select(kit, workflow_id, entries, keyframes, policy)
    if not selection.remove or not selection.keep:
        return
    first, newest = selection.keep[0], max(spared, default=selection.keep[-1])
    if any(first < keyframe.sequence <= newest for keyframe in keyframes):
        return
    write_whole(kit, workflow_id, next(entry for entry in entries if entry.sequence == newest))


def write_whole(kit: Kit, workflow_id: str, entry: Entry) -> None:
    """Write the keyframe of a checkpoint, so that nothing before it is needed."""
    restorer = Restorer(kit.store, kit.formats, kit.vault)
    tree = restorer.whole(restorer.restore(workflow_id, entry.sequence))
    write_keyframe(kit, caption_of(kit.store, workflow_id, entry), tree)


def _spared(kit: Kit, workflow_id: str, entries: list[Entry]) -> set[int]:
    """Name what has to stay whatever its age because the newest checkpoint cannot be restored any more."""
    newest = next((entry.sequence for entry in reversed(entries) if not entry.pruned), None)
    if newest is None:
        return set()
    try:
        if _is_usable(kit, workflow_id, newest):
            return set()
        reachable = (entry.sequence for entry in survey(kit.store, workflow_id).reachable)
        return set(islice((one for one in reachable if _is_usable(kit, workflow_id, one)), _SPARED))
    except CheckpointError:
        # Without its key nothing can be said about a checkpoint; age and number decide.
        return set()


def _is_usable(kit: Kit, workflow_id: str, sequence: int) -> bool:
    """Tell whether a state can be restored, with its blobs."""
    restorer = Restorer(kit.store, kit.formats, kit.vault)
    try:
        restorer.whole(restorer.restore(workflow_id, sequence))
    except UNUSABLE:
        return False
    return True


def _select(
    kit: Kit,
    workflow_id: str,
    entries: list[Entry],
    keyframes: list[KeyframeEntry],
    policy: RetentionPolicy,
) -> tuple[Selection, set[int]]:
    """Decide what stays, and name what of it is spared."""
    labelled = _labelled(kit, workflow_id, entries) if policy.keep_tagged else entries
    chosen = select(labelled, [keyframe.sequence for keyframe in keyframes], policy, kit.clock.now())
    if not chosen.remove:
        # Where everything stays nothing is spared. Finding out would restore a state after each keyframe.
        return chosen, set()
    spared = _spared(kit, workflow_id, entries)
    keep = tuple(sorted({*chosen.keep, *spared}))
    return Selection(keep, tuple(sequence for sequence in chosen.remove if sequence not in spared)), spared


def _labelled(kit: Kit, workflow_id: str, entries: list[Entry]) -> list[Entry]:
    """Answer entries with a label where one was given after the checkpoint was made, too."""
    told = Reader(kit).last_events(NOTED_EVENT, workflow_id, [entry for entry in entries if not entry.pruned])
    given = {sequence: read_annotation(event.data, event.seq).labels for sequence, event in told.items()}
    return [replace(one, label=next(iter(given.get(one.sequence, ())), one.label)) for one in entries]


def _plan(entries: list[Entry], keyframes: list[KeyframeEntry], keep: set[int] | tuple[int, ...]) -> Plan:
    going = removal(entries, keyframes, keep)
    return Plan(going, _freed(entries, keyframes, going))


def _freed(entries: list[Entry], keyframes: list[KeyframeEntry], going: Removal) -> int:
    groups = set(going.groups)
    records = sum(entry.length for entry in entries if entry.group in groups)
    return records + sum(keyframe.length for keyframe in keyframes if keyframe.sequence in groups)
