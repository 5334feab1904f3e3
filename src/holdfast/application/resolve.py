"""From what a person or a program wrote to the checkpoint that is meant."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath

from holdfast.application.commands import CheckpointName
from holdfast.domain.checkpoint import CheckpointMeta
from holdfast.domain.errors import CheckpointConflictError, CheckpointNotFoundError, InvalidIdError
from holdfast.domain.ids import CheckpointID, CheckpointRef, check_workflow_id, folder_name, parse_ref, shard
from holdfast.domain.record import Entry, Head
from holdfast.domain.value import value
from holdfast.ports import Store

_WHOLE_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DELTAS_SUFFIX = ".deltas.jsonl"
#: How deep a checkpoint's file lies: below the folders of all, of its shard and of its workflow.
_DEPTH = 4
_LIST_HINT = "See `holdfast list` for what is there."


@value
class Found:
    """A checkpoint that exists."""

    workflow_id: str
    entry: Entry

    @property
    def id(self) -> CheckpointID:
        return CheckpointMeta.from_entry(self.workflow_id, self.entry).id

    def __str__(self) -> str:
        return f"{self.workflow_id}@{self.entry.sequence}"


def known_head(store: Store, workflow_id: str) -> Head:
    """Answer the head of a workflow that is there.

    Raises:
        CheckpointNotFoundError: there is no such workflow.
        InvalidIdError: that is no name of one.
    """
    head = store.head(check_workflow_id(workflow_id))
    if not (head.sequence or head.event_seq):
        raise no_such_workflow(workflow_id)
    return head


def no_such_workflow(workflow_id: str) -> CheckpointNotFoundError:
    """Say that a workflow is not there."""
    return CheckpointNotFoundError("there is no such workflow", place=workflow_id, hint=_LIST_HINT)


def name_taken(workflow_id: str) -> CheckpointConflictError:
    """Say that a new workflow cannot have the name of one that is there."""
    return CheckpointConflictError(
        "there is a workflow of that name already",
        place=workflow_id,
        hint="Give the new workflow another name.",
    )


def resolve(store: Store, name: CheckpointName) -> Found:
    """Find the checkpoint that a name means.

    Raises:
        CheckpointNotFoundError: if there is none, or it was pruned.
        InvalidIdError: if the name is none, or means several.
    """
    if isinstance(name, CheckpointID):
        return _same(_numbered(store, name.workflow_id, name.sequence), name)
    ref = parse_ref(name)
    if ref.is_point:
        raise InvalidIdError(
            "this is a point of the journal, and a checkpoint is needed here",
            place=str(ref),
            hint="Name a checkpoint (WF@42); show, diff, fork, replay and restore take points too.",
        )
    if ref.path:
        return _numbered(store, _workflow_of_file(store, ref.path), ref.sequence or 0)
    if ref.uuid and not store.head(ref.workflow_id).sequence:
        return _by_uuid(store, ref.uuid)
    return _selected(store, ref)


def as_point(name: CheckpointName) -> CheckpointRef | None:
    """Answer what a name means if that is a point of a journal; None if it is a checkpoint.

    Raises:
        InvalidIdError: if the name is none.
    """
    if isinstance(name, CheckpointID):
        return None
    ref = parse_ref(name)
    return ref if ref.is_point else None


def uuid_of(store: Store, name: CheckpointName) -> str:
    """Answer the UUID of a checkpoint; one written in full is believed."""
    if isinstance(name, CheckpointID) and name.uuid:
        return name.uuid
    if isinstance(name, str) and _WHOLE_UUID.fullmatch(name.lower()):
        return name.lower()
    return resolve(store, name).entry.uuid


def living(store: Store, workflow_id: str) -> Iterator[Entry]:
    """Yield the checkpoints of a workflow that were not pruned, newest first."""
    return (entry for entry in store.entries(workflow_id, newest_first=True) if not entry.pruned)


def newest_kept(store: Store, workflow_id: str, head: Head) -> int:
    """Answer the last checkpoint that callers see: not one that was removed; 0 if none is left."""
    entries = store.entries(workflow_id, newest_first=True)
    last = next(entries, None)
    if last is None or last.sequence != head.sequence or not last.pruned:
        return head.sequence
    return next((entry.sequence for entry in entries if not entry.pruned), 0)


def _selected(store: Store, ref: CheckpointRef) -> Found:
    if ref.sequence is not None and not ref.back:
        return _numbered(store, ref.workflow_id, ref.sequence)
    candidates = living(store, ref.workflow_id)
    if ref.phase is not None:
        candidates = (entry for entry in candidates if entry.phase == ref.phase)
    elif ref.stage is not None:
        candidates = (entry for entry in candidates if entry.stage == ref.stage)
    elif ref.sequence is not None:
        # `WF@42~2` counts from checkpoint 42, which has to be there.
        last = _numbered(store, ref.workflow_id, ref.sequence).entry.sequence
        candidates = (entry for entry in candidates if entry.sequence <= last)
    entry = next(islice(candidates, ref.back, None), None)
    if entry is None:
        raise CheckpointNotFoundError("there is no such checkpoint", place=str(ref), hint=_LIST_HINT)
    return Found(ref.workflow_id, entry)


def _numbered(store: Store, workflow_id: str, sequence: int) -> Found:
    place = f"{workflow_id}@{sequence}"
    for entry in store.entries(workflow_id, newest_first=True):
        if entry.sequence == sequence:
            if entry.pruned:
                raise CheckpointNotFoundError("the checkpoint was pruned", place=place, hint=_LIST_HINT)
            return Found(workflow_id, entry)
    raise CheckpointNotFoundError("there is no such checkpoint", place=place, hint=_LIST_HINT)


def _same(found: Found, wanted: CheckpointID) -> Found:
    # What was not durable when it was told may have been written after an event that overtook it.
    is_other = (
        wanted.checksum and wanted.checksum != found.entry.checksum
        if wanted.durable or not wanted.uuid
        else wanted.uuid != found.entry.uuid
    )
    if is_other:
        raise CheckpointNotFoundError(
            "this store holds another checkpoint of that name",
            place=str(wanted),
            hint="The id is from another store, or from another history of this one.",
        )
    return found


def _by_uuid(store: Store, prefix: str) -> Found:
    found = [Found(workflow_id, entry) for workflow_id, entry in store.find(prefix) if not entry.pruned]
    if len(found) > 1:
        some = ", ".join(str(candidate) for candidate in found[:3])
        raise InvalidIdError(
            f"{len(found)} checkpoints begin so ({some})", place=prefix, hint="Give more of its digits."
        )
    if not found:
        raise CheckpointNotFoundError("there is no such checkpoint", place=prefix, hint=_LIST_HINT)
    return found[0]


def _workflow_of_file(store: Store, path: str) -> str:
    if path.endswith(_DELTAS_SUFFIX):
        raise InvalidIdError(
            "this file holds changes of several checkpoints, and is none of them",
            place=path,
            hint="Name the one that is meant: WF@42.",
        )
    folders = _folders_in_store(store, path)
    for workflow_id in store.workflows() if folders else ():
        if folders == (shard(workflow_id), folder_name(workflow_id)):
            return workflow_id
    raise CheckpointNotFoundError(
        "the file is not in this store",
        place=path,
        hint="Open the store that it lies in, or name the checkpoint by its workflow: WF@42.",
    )


def _folders_in_store(store: Store, path: str) -> tuple[str, ...]:
    """Answer the folders of a shard and a workflow that a file lies in; none: it is not in this store."""
    scheme, _, root = store.url.partition(":")
    if scheme != "file":
        return ()
    # Another store may have a workflow of that name, and be this one by another way.
    real = PurePath(os.path.realpath(path.replace("\\", "/")))
    above = PurePath(os.path.realpath(root))
    inside = real.relative_to(above).parts if real.is_relative_to(above) else ()
    return inside[1:-1] if len(inside) == _DEPTH else ()
