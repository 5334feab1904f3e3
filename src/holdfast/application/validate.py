"""Whether a checkpoint is what was committed, looked at from every side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.application.commands import CheckpointName
from holdfast.application.kit import Kit
from holdfast.application.loading import record_fields
from holdfast.application.observing import CHECKPOINT, VERIFY, found_invalid, spanned
from holdfast.application.quarantine_marks import is_quarantined
from holdfast.application.reading import Reader
from holdfast.application.resolve import Found, resolve
from holdfast.application.restore import read_chain
from holdfast.application.snapshot import from_plain
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.checkpoint import SCHEMA_VERSION
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
    KeyUnavailableError,
)
from holdfast.domain.ids import GENESIS, CheckpointID
from holdfast.domain.placeholders import is_redacted
from holdfast.domain.telemetry import FoundBy
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
    """Check a checkpoint's record, its place in the chain, its state and its blobs; note how that went."""
    with spanned(kit, VERIFY, {CHECKPOINT: str(name)}):
        result = validate_listed(kit, reader, list_one(kit.store, resolve(kit.store, name)))
    outcome = Outcome.FAILURE if result.problems else Outcome.SUCCESS
    reader.tell(AuditType.CHECKPOINT_VALIDATED, resolve(kit.store, name), outcome=outcome)
    return result


def validate_listed(kit: Kit, reader: Reader, listed: Listed) -> ValidationResult:
    """Check a checkpoint that was looked up already: of many, the listing is then read once.

    Raises:
        KeyUnavailableError: a key is configured, and it does not open the state.
    """
    is_shut = kit.vault is not None and kit.vault.is_shut(listed.found.workflow_id)
    result = _validate_sealed(kit, listed) if is_shut else _validate_open(kit, reader, listed)
    found_invalid(kit, FoundBy.VALIDATION, is_so=not result.valid)
    return result


def _validate_open(kit: Kit, reader: Reader, listed: Listed) -> ValidationResult:
    """Check everything that is stored of a checkpoint, and what its state becomes."""
    found, problems = listed.found, list[str]()
    notes: tuple[str, ...] = ()
    try:
        problems.extend(_record(kit, listed))
        restored = reader.verified(found)
        notes = restored.notes
        if is_quarantined(kit.store, found.workflow_id, found.entry.sequence):
            notes = (*notes, "in quarantine, though it verifies: see `holdfast quarantine release`")
        tree = reader.whole(found, restored)
        size_bytes = from_plain(tree, kit.packer).size
        # The size is that of the state as it was given, before secrets were taken out of it.
        if size_bytes != found.entry.state_bytes and not is_redacted(tree):
            problems.append(f"the state has {size_bytes} bytes, {found.entry.state_bytes} were committed")
    except KeyUnavailableError:
        # It may well be whole: whoever looks lacks the key to tell.
        raise
    except CheckpointError as problem:
        problems.append(told(problem, str(found)))
    return ValidationResult(found.id, tuple(problems), notes)


def _validate_sealed(kit: Kit, listed: Listed) -> ValidationResult:
    """Check everything that is stored of a checkpoint whose state nobody here can open."""
    found, problems = listed.found, list[str]()
    try:
        problems.extend(_record(kit, listed))
        _read_sealed(kit.store, found)
    except CheckpointError as problem:
        problems.append(told(problem, str(found)))
    note = "every stored byte was checked; the state is encrypted, and its key is not at hand"
    return ValidationResult(found.id, tuple(problems), (note,))


def _read_sealed(store: Store, found: Found) -> None:
    """Read the way from a keyframe to a checkpoint, with all blobs: reading checks each against its sum."""
    workflow_id, sequence = found.workflow_id, found.entry.sequence
    keyframes = [one for one in store.keyframes(workflow_id) if one.sequence <= sequence]
    if not keyframes:
        raise CheckpointNotFoundError("there is nothing left to build the state from", place=str(found))
    first = keyframes[-1].sequence
    store.keyframe(workflow_id, first)
    chain = read_chain(store, workflow_id, first, sequence)
    if chain[-1].checksum != found.entry.checksum:
        raise ChecksumMismatchError("the checkpoint is not the one listed", place=str(found))
    needed = [entry for entry in store.entries(workflow_id) if first <= entry.sequence <= sequence]
    for sha256 in {*keyframes[-1].blobs, *(sha256 for entry in needed for sha256 in entry.blobs)}:
        store.blob(sha256)


def _record(kit: Kit, listed: Listed) -> Iterator[str]:
    """Check the record against its own checksum and against the checkpoint before."""
    found = listed.found
    fields = record_fields(kit.store, found.workflow_id, found.entry, listed_parent=listed.parent)
    if fields.get("wf") != found.workflow_id or fields.get("seq") != found.entry.sequence:
        yield f"the record is that of {fields.get('wf')}@{fields.get('seq')}"
    if fields.get("schema", SCHEMA_VERSION) != found.entry.schema:
        yield f"the listing says version {found.entry.schema}, the record {fields.get('schema')}"
    if fields.get("parent") != listed.parent:
        yield "the record was not committed on top of the checkpoint before it"


def told(problem: CheckpointError, place: str) -> str:
    """Say what is wrong with a place, and where else to look; what to do is for whoever lists problems."""
    return problem.message if problem.place in ("", place) else f"{problem.message}: {problem.place}"
