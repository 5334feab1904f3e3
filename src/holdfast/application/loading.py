"""The base of a workflow that nobody remembers, read back from the store."""

from __future__ import annotations

import warnings
from dataclasses import replace
from shlex import quote
from typing import Any

from holdfast.application.base import Base
from holdfast.application.commit_queue import Lineage
from holdfast.application.housekeeping import KeyframeJob
from holdfast.application.keyframes import Caption
from holdfast.application.kit import Kit
from holdfast.application.records import read_fields, unsealed
from holdfast.application.resolve import living
from holdfast.application.restore import Restorer, open_alone
from holdfast.application.secrecy.sealing import Vault
from holdfast.application.snapshot import Snapshot, from_plain
from holdfast.application.vanished import vanished
from holdfast.domain.checkpoint import DEFAULT_MAX_RETRIES, SCHEMA_VERSION, CheckpointMeta
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    CheckpointReadError,
    CheckpointRecoveryError,
    ChecksumMismatchError,
    KeyDestroyedError,
    StoreDamageWarning,
)
from holdfast.domain.keyframe import delta_weight, needs_keyframe
from holdfast.domain.plain import Plain
from holdfast.domain.record import Entry, Head
from holdfast.domain.value import value
from holdfast.ports import Packer, Store


@value
class Loaded:
    """A base, and a keyframe in place of one that was due and never written."""

    base: Base
    owed: KeyframeJob | None = None


def load_base(kit: Kit, workflow_id: str) -> Loaded:
    """Read what the next checkpoint of a workflow is made from."""
    head = kit.store.head(workflow_id)
    if head.sequence == 0:
        return Loaded(Base(head, Lineage()))
    entries = _last_group(kit.store, workflow_id, head)
    if not entries or entries[0].checksum != head.checksum:
        raise CheckpointConflictError(
            "the workflow changed while it was read", place=workflow_id, hint="Call again."
        )
    last = entries[0]
    _refuse_vanished(kit, workflow_id, head, last.event_seq)
    # Asked before: if the state can be opened afterwards, it was with this key.
    key_id = kit.vault.sealer(workflow_id).key_id if kit.vault is not None else ""
    # Where everything was removed the bytes may go for good before what is built on them is committed.
    is_going = last.pruned and next(living(kit.store, workflow_id), None) is None
    snapshot = None if is_going else _snapshot(kit, workflow_id, last)
    if snapshot is None:
        return Loaded(Base(head, Lineage(), checkpoint_event_seq=last.event_seq))
    loaded = _resume(kit, workflow_id, head, entries, snapshot)
    return replace(loaded, base=replace(loaded.base, key_id=key_id))


def _refuse_vanished(kit: Kit, workflow_id: str, head: Head, after: int) -> None:
    """Never give a number twice: what the journal tells of and nobody stores has to be recovered first."""
    gone = vanished(kit.store, workflow_id, after, kit.vault) if head.event_seq > after else ()
    if gone:
        raise CheckpointCorruptError(
            f"the journal tells of checkpoints up to {gone[0]}; {gone[-1]} and later are stored nowhere",
            place=workflow_id,
            hint=f"Run `holdfast recover {quote(workflow_id)}`: it goes on from what is left, and says so.",
        )


def _last_group(store: Store, workflow_id: str, head: Head) -> list[Entry]:
    """List the newest checkpoints, back to the one whose keyframe they follow: a workflow may be long."""
    entries: list[Entry] = []
    for entry in store.entries(workflow_id, newest_first=True):
        if entry.sequence <= head.sequence:
            entries.append(entry)
            if entry.sequence <= entries[0].group:
                break
    return entries


def _snapshot(kit: Kit, workflow_id: str, last: Entry) -> Snapshot | None:
    """Read the last state; None where it is gone, erased or damaged: then the next checkpoint is complete."""
    restorer = Restorer(kit.store, kit.formats, kit.vault)
    try:
        restored = restorer.restore(workflow_id, last.sequence)
        if restored.checksum != last.checksum:
            raise ChecksumMismatchError("the restored state is not the last checkpoint's")
        return from_plain(restorer.whole(restored), kit.packer)
    except KeyDestroyedError:
        # Erased, as somebody asked for: nothing is damaged.
        return None
    except (CheckpointReadError, CheckpointRecoveryError) as problem:
        if not last.pruned:
            warnings.warn(
                f"{workflow_id}@{last.sequence} cannot be read ({problem}); the next checkpoint is complete",
                StoreDamageWarning,
                stacklevel=2,
            )
        return None


def _resume(kit: Kit, workflow_id: str, head: Head, entries: list[Entry], snapshot: Snapshot) -> Loaded:
    last = entries[0]
    group, keyframe_bytes, weight = last.sequence, last.state_bytes, 0
    if not _has_keyframe(kit.store, workflow_id, group):
        group, keyframe_bytes, weight = _since_keyframe(entries)
    owed = None
    if not last.pruned and not _has_keyframe(kit.store, workflow_id, group):
        # The state it was due for is not at hand, but the last one is, and serves as well.
        owed = KeyframeJob(caption_of(kit.store, workflow_id, last), snapshot, is_as_stored=True)
        group, keyframe_bytes, weight = last.sequence, snapshot.size, 0
    base = Base(
        head,
        Lineage(),
        snapshot,
        is_read_back=True,
        size_bytes=snapshot.size,
        id=None if last.pruned else CheckpointMeta.from_entry(workflow_id, last).id,
        fingerprint=() if last.pruned else _fingerprint(kit, workflow_id, last),
        group=group,
        keyframe_bytes=keyframe_bytes,
        weight=weight,
        checkpoint_event_seq=last.event_seq,
    )
    return Loaded(base, owed)


def _has_keyframe(store: Store, workflow_id: str, sequence: int) -> bool:
    newest = store.newest_keyframe(workflow_id, sequence)
    return newest is not None and newest.sequence == sequence


def _since_keyframe(entries: list[Entry]) -> tuple[int, int, int]:
    """Answer the group of the next record, the size of its keyframe and the weight of the deltas since."""
    last, first = entries[0], entries[-1]
    weight = sum(delta_weight(entry.length) for entry in entries if entry.sequence > last.group)
    if needs_keyframe(first.state_bytes, weight, last.state_bytes):
        return last.sequence, last.state_bytes, 0
    return last.group, first.state_bytes, weight


def _fingerprint(kit: Kit, workflow_id: str, entry: Entry) -> tuple[object, ...]:
    """Answer what tells a checkpoint that only repeats the last one; of a damaged one nobody can tell."""
    try:
        fields = record_fields(kit.store, workflow_id, entry, kit.vault)
    except CheckpointReadError:
        return ()
    states = (_packed(fields.get(name), kit.packer) for name in ("stage_state", "agent_state"))
    names = (entry.type, entry.stage, entry.agent, *states, fields.get("handler"), fields.get("schema"))
    retries, parent = fields.get("max_retries", DEFAULT_MAX_RETRIES), fields.get("parent_id")
    return (*names, retries, parent, tuple(fields.get("deps", ())))


def _packed(plain: Any, packer: Packer) -> bytes | None:
    return None if plain is None else packer.pack(Plain(plain))


def record_fields(
    store: Store, workflow_id: str, entry: Entry, vault: Vault | None = None, listed_parent: str = ""
) -> dict[str, Any]:
    """Read the fields of one record, verified against its entry; without a vault those in the clear.

    Its parent's checksum and the version of its state are among them also where its line leaves them out.
    """
    place = f"{workflow_id}@{entry.sequence}"
    data = next(iter(store.records(workflow_id, entry.sequence, entry.sequence)), None)
    if data is None:
        raise CheckpointNotFoundError("the record of a checkpoint is gone", place=place)
    opened, parent = open_alone(store, data, workflow_id, entry.sequence, listed_parent)
    if opened.checksum != entry.checksum:
        raise ChecksumMismatchError("the record is not the one that was committed", place=place)
    chain = [opened] if vault is None else unsealed([opened], vault, workflow_id, entry.sequence)
    return {"parent": parent, "schema": SCHEMA_VERSION, **read_fields(chain)[0]}


def caption_of(store: Store, workflow_id: str, entry: Entry) -> Caption:
    """Write the caption of a keyframe for a checkpoint that is stored already."""
    fields = record_fields(store, workflow_id, entry)
    return Caption(
        workflow_id=workflow_id,
        sequence=entry.sequence,
        timestamp=entry.timestamp,
        checksum=entry.checksum,
        agent_id=entry.agent,
        agent_version=fields.get("agent_version"),
        session_id=entry.session,
        parent_sequence=entry.parent,
        parent_checksum=fields["parent"],
        events_since_prev=fields.get("events", 1),
        size_bytes=entry.state_bytes,
        key_id=(fields.get("payload") or {}).get("key", ""),
        schema=fields.get("schema", SCHEMA_VERSION),
    )
