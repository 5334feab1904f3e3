"""Whether a checkpoint is what was committed, looked at from every side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.application.commands import CheckpointName
from holdfast.application.kit import Kit
from holdfast.application.loading import record_fields
from holdfast.application.reading import Reader
from holdfast.application.resolve import Found, resolve
from holdfast.application.snapshot import from_plain
from holdfast.domain.errors import CheckpointError
from holdfast.domain.ids import GENESIS, CheckpointID
from holdfast.ports import Store


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """What was found; true if nothing is wrong. Notes are damage that did no harm."""

    id: CheckpointID
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        return not self.problems

    def __bool__(self) -> bool:
        return self.valid


@dataclass(frozen=True, slots=True)
class Listed:
    """A checkpoint, and the checksum that the listing has for the one before it."""

    found: Found
    parent: str


def list_workflow(store: Store, workflow_id: str) -> list[Listed]:
    """List the checkpoints of a workflow that are kept, oldest first; the store is asked once."""
    entries = list(store.entries(workflow_id))
    checksums = {entry.sequence: entry.checksum for entry in entries}
    return [
        Listed(Found(workflow_id, entry), checksums.get(entry.parent, GENESIS))
        for entry in entries
        if not entry.pruned
    ]


def list_one(store: Store, found: Found) -> Listed:
    """List a single checkpoint."""
    for entry in store.entries(found.workflow_id, newest_first=True):
        if entry.sequence == found.entry.parent:
            return Listed(found, entry.checksum)
    return Listed(found, GENESIS)


def validate(kit: Kit, reader: Reader, name: CheckpointName) -> ValidationResult:
    """Check a checkpoint's record, its place in the chain, its state and its blobs."""
    return validate_listed(kit, reader, list_one(kit.store, resolve(kit.store, name)))


def validate_listed(kit: Kit, reader: Reader, listed: Listed) -> ValidationResult:
    """Check a checkpoint that was looked up already: of many, the listing is then read once."""
    found, problems = listed.found, list[str]()
    notes: tuple[str, ...] = ()
    try:
        problems.extend(_record(kit, listed))
        restored = reader.restored(found)
        notes = restored.notes
        size_bytes = from_plain(reader.whole(restored), kit.packer).size
        if size_bytes != found.entry.state_bytes:
            problems.append(f"the state has {size_bytes} bytes, {found.entry.state_bytes} were committed")
    except CheckpointError as problem:
        problems.append(str(problem))
    return ValidationResult(found.id, tuple(problems), notes)


def _record(kit: Kit, listed: Listed) -> Iterator[str]:
    """Check the record against its own checksum and against the checkpoint before."""
    found = listed.found
    fields = record_fields(kit.store, found.workflow_id, found.entry)
    if fields.get("wf") != found.workflow_id or fields.get("seq") != found.entry.sequence:
        yield f"the record is that of {fields.get('wf')}@{fields.get('seq')}"
    if fields.get("parent") != listed.parent:
        yield "the record was not committed on top of the checkpoint before it"
