"""Finding the checkpoint to go on from: the newest that verifies, past everything that does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.loading import record_fields
from holdfast.application.reading import Reader
from holdfast.application.resolve import Found, living
from holdfast.application.revealing import Revealed
from holdfast.application.survey import survey
from holdfast.application.vanished import vanished
from holdfast.domain.checkpoint import has_ended
from holdfast.domain.errors import (
    UNUSABLE,
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointReadError,
    NoValidCheckpointError,
)
from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import Entry
from holdfast.domain.recovery import RecoveryMode
from holdfast.domain.recovery_plan import Damage
from holdfast.ports import Store

_BACKUP = "Restore the workflow's files from a backup if there is one."


@dataclass(frozen=True, slots=True)
class Way:
    """What a workflow can be recovered from: a checkpoint whose state verified, or nothing."""

    workflow_id: str
    found: Found | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    #: Secrets that are missing in the state.
    revealed: Revealed = field(default_factory=Revealed)
    #: The newest checkpoint there is, usable or not.
    newest: Entry | None = None
    passed_over: tuple[int, ...] = ()
    damage: tuple[Damage, ...] = ()
    #: What was worked around.
    notes: tuple[str, ...] = ()
    #: Why those that were tried could not be used, by sequence.
    problems: Mapping[int, str] = field(default_factory=dict)

    @property
    def checkpoint_id(self) -> CheckpointID | None:
        return self.found.id if self.found else None

    @property
    def event_seq(self) -> int:
        """The last event that the state knows of."""
        return self.found.entry.event_seq if self.found else 0

    def refusals(self, mode: RecoveryMode) -> tuple[str, ...]:
        """Say why there is nothing to go on with."""
        if mode is RecoveryMode.POINT_IN_TIME or self.newest is None:
            return ()
        earlier = "earlier points are reached by point_in_time (`recover --to N`) or a fork"
        if has_ended(self.newest):
            return (f"the workflow ended with checkpoint {self.newest.sequence}; {earlier}",)
        if self.fields.get("resumable") is False:
            return (
                f"the state of checkpoint {self.newest.sequence} says that it cannot be resumed; {earlier}",
            )
        return ()


class Search:
    """Looks for a way, from the best checkpoint on."""

    def __init__(self, kit: Kit, reader: Reader) -> None:
        self._kit = kit
        self._reader = reader

    def way(self, workflow_id: str, mode: RecoveryMode, target_sequence: int | None) -> Way:
        """Find the newest checkpoint that verifies, or the one asked for.

        Raises:
            CheckpointNotFoundError: there is no such workflow, or no such checkpoint of it.
            CheckpointCorruptError: the first choice does not verify, and no other may stand in for it.
        """
        kept = list(living(self._kit.store, workflow_id))
        wanted = [entry for entry in kept if target_sequence is None or entry.sequence <= target_sequence]
        self._check_target(workflow_id, wanted, target_sequence)
        way = self._newest(workflow_id, wanted, mode)
        return way if target_sequence is not None else self._after_all(way)

    def _newest(self, workflow_id: str, wanted: list[Entry], mode: RecoveryMode) -> Way:
        if not wanted:
            return Way(workflow_id)
        try:
            return self._restored(Found(workflow_id, wanted[0]), is_from_oldest=mode is RecoveryMode.FULL)
        except UNUSABLE as problem:
            if not self._kit.recovery.is_fallback_allowed:
                raise
            return self._older(workflow_id, wanted, problem)

    def _after_all(self, way: Way) -> Way:
        """Pass over the checkpoints, too, of which nothing but an event is left."""
        gone = vanished(self._kit.store, way.workflow_id, way.event_seq, self._kit.vault)
        if not gone:
            return way
        note = f"the journal tells of checkpoints up to {gone[0]}; {gone[-1]} and later are stored nowhere"
        if not self._kit.recovery.is_fallback_allowed:
            raise CheckpointCorruptError(note, place=way.workflow_id, hint=_BACKUP)
        return replace(way, passed_over=(*gone, *way.passed_over), notes=(*way.notes, f"{note}. {_BACKUP}"))

    def _check_target(self, workflow_id: str, wanted: list[Entry], target_sequence: int | None) -> None:
        if target_sequence is not None and (not wanted or wanted[0].sequence != target_sequence):
            raise CheckpointNotFoundError(
                "there is no such checkpoint, or it was pruned",
                place=f"{workflow_id}@{target_sequence}",
                hint="See `holdfast list` for what is there.",
            )

    def _older(self, workflow_id: str, wanted: list[Entry], problem: CheckpointError) -> Way:
        """Look at every piece once, then try what can be reached."""
        seen = survey(self._kit.store, workflow_id)
        newest, problems = wanted[0], {wanted[0].sequence: problem.message}
        reachable = [entry for entry in seen.reachable if entry.sequence < newest.sequence]
        way = self._first(workflow_id, reachable, problems)
        last = way.found.entry.sequence if way.found else 0
        return Way(
            workflow_id,
            way.found,
            way.fields,
            way.revealed,
            newest,
            tuple(entry.sequence for entry in wanted if entry.sequence > last),
            seen.damage,
            (*(f"{workflow_id}@{tried}: {why}" for tried, why in problems.items()), *way.notes),
            problems,
        )

    def _first(self, workflow_id: str, entries: Iterable[Entry], problems: dict[int, str]) -> Way:
        """Answer the first that verifies, and add why those before it do not."""
        for entry in entries:
            try:
                return self._restored(Found(workflow_id, entry))
            except UNUSABLE as problem:
                problems[entry.sequence] = problem.message
        return Way(workflow_id)

    def _restored(self, found: Found, *, is_from_oldest: bool = False) -> Way:
        restored = self._reader.restored(found, is_from_oldest=is_from_oldest)
        fields, revealed = self._reader.revived(found, restored)
        notes = (*restored.notes, *self._record_notes(found))
        damage = survey(self._kit.store, found.workflow_id).damage if notes else ()
        return Way(found.workflow_id, found, fields, revealed, found.entry, (), damage, notes)

    def _record_notes(self, found: Found) -> tuple[str, ...]:
        """Say that the record of a checkpoint is damaged where its keyframe alone gives the state."""
        try:
            record_fields(self._kit.store, found.workflow_id, found.entry)
        except CheckpointReadError as problem:
            return (f"record {found}: {problem.message}; the keyframe beside it has the state",)
        return ()


def nothing_valid(store: Store, way: Way) -> NoValidCheckpointError:
    """Say that nothing verifies, and what remains."""
    head, anew = store.head(way.workflow_id), f"`holdfast recover {way.workflow_id} --fresh`"
    if way.newest:
        said = f"none of {len(way.passed_over)} checkpoints verifies (damaged pieces: {len(way.damage)})"
    elif way.passed_over:
        said = f"{len(way.passed_over)} checkpoints were made, and nothing of them is stored any more"
    elif when := _erased_at(store, way.workflow_id):
        # Whoever brings such a one back from a backup undoes what somebody had a right to.
        return NoValidCheckpointError(
            f"the workflow was erased at {when}, with its {head.sequence} checkpoints",
            place=way.workflow_id,
            hint=f"That is for good. To begin anew under its name: {anew}, in a program on_no_valid=fresh.",
        )
    else:
        said = f"all {head.sequence} checkpoints were removed"
    return NoValidCheckpointError(
        f"{said}; {head.event_seq} events were committed",
        place=way.workflow_id,
        hint="See `holdfast quarantine list`; restore the files from a backup and release them, or start"
        f" over from the events: {anew}, in a program on_no_valid=fresh.",
    )


def _erased_at(store: Store, workflow_id: str) -> str:
    from holdfast.application.audit.missing import erased_at

    return erased_at(store, workflow_id)
