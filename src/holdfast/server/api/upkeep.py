"""Looking after checkpoints: whether they are what was committed, and whether retention may take them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.application.annotating import annotation_of
from holdfast.application.reading import Reader
from holdfast.application.resolve import Found as Checkpoint
from holdfast.application.validate import list_workflow, told, validate_listed
from holdfast.domain.access import Scope
from holdfast.domain.annotation import LABEL_CHARS_MAX, LABELS_MAX, NOTE_CHARS_MAX, Annotation, check_labels
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import CheckpointError
from holdfast.domain.event import decode_event
from holdfast.domain.ids import GENESIS, CheckpointID
from holdfast.domain.record import Entry
from holdfast.domain.time import timestamp_text
from holdfast.server.acting import CHANGING, Acting, Name, begin
from holdfast.server.api.reading import check_there, found_checkpoint
from holdfast.server.desk import Desk
from holdfast.server.etags import check_match, checkpoint_etag
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.operations import OperationRow, Progress
from holdfast.server.problems import Refusal

_NAMED_MAX = 500
_T = TypeVar("_T")


class Validate(Acting):
    """What to check."""

    #: Null: every workflow.
    workflow_id: Name | None = None
    #: Also events, sums, blobs and the store's own files.
    deep: bool = False


Label = Annotated[str, Meta(min_length=1, max_length=LABEL_CHARS_MAX, pattern=r"\S")]


class Change(Acting):
    """What is to be changed of a checkpoint; what is left out stays, and the checkpoint itself does."""

    #: Whether it stays whatever retention says.
    pinned: bool | UnsetType = UNSET
    #: All that it is to have, beside the one that it was made with.
    labels: Annotated[list[Label], Meta(max_length=LABELS_MAX)] | UnsetType = UNSET
    #: For people; "" takes it away. It can be erased with its workflow.
    note: Annotated[str, Meta(max_length=NOTE_CHARS_MAX)] | UnsetType = UNSET


class Validation(msgspec.Struct):
    """Whether a checkpoint is what was committed; notes are damage that did no harm."""

    id: str
    valid: bool
    problems: list[str]
    notes: list[str]


class Found(msgspec.Struct):
    """Something that was found, and where."""

    place: str
    problem: str


class StoreValidation(msgspec.Struct):
    """Whether what was looked at is what was committed."""

    valid: bool
    checkpoints: int
    events: int
    #: How many there are; so many are named at most.
    problem_count: int
    problems: list[Found]
    notes: list[Found]


class Standing(msgspec.Struct):
    """How a checkpoint stands after a change."""

    id: str
    pinned: bool
    status: str
    retry_count: int
    updated_at: str
    labels: list[str]
    #: For whoever may read states.
    note: str


def validate_checkpoint(desk: Desk, asked: Asked[None, Acting]) -> Validation:
    """Check one checkpoint."""
    found = found_checkpoint(desk, asked.path["checkpoint"])
    begin(desk, asked, "validateCheckpoint", found.workflow_id)
    result = desk.service.validate_checkpoint(str(found))
    return Validation(str(found), result.valid, list(result.problems), list(result.notes))


def validate(desk: Desk, asked: Asked[None, Validate]) -> Answer:
    """Check a workflow, or all of them."""
    body = asked.body
    if body.workflow_id is not None:
        check_there(desk, body.workflow_id)
    begin(desk, asked, "validate", body.workflow_id)
    return desk.operations.start(
        "validate",
        partial(_validate, desk, body),
        asked,
        scope=Scope.WRITE,
        workflow_id=body.workflow_id,
        unit="workflows",
    )


@dataclass(slots=True)
class _Tally:
    """What was found so far."""

    checkpoints: int = 0
    events: int = 0
    problem_count: int = 0
    problems: list[Found] = field(default_factory=list)
    notes: list[Found] = field(default_factory=list)

    def add(self, place: str, problem: str, *, harm: bool = True) -> None:
        """Add something; of very much, only so much is named."""
        self.problem_count += harm
        kept = self.problems if harm else self.notes
        if len(kept) < _NAMED_MAX:
            kept.append(Found(place, problem))


def _validate(desk: Desk, body: Validate, progress: Progress) -> StoreValidation:
    tally = _Tally()
    chosen = [body.workflow_id] if body.workflow_id is not None else sorted(desk.kit.store.workflows())
    for number, workflow_id in enumerate(chosen):
        progress.step(number, len(chosen))
        try:
            _check_workflow(desk, workflow_id, tally, progress)
            tally.events += sum(1 for _ in _events(desk, workflow_id, progress)) if body.deep else 0
        except CheckpointError as problem:
            tally.add(workflow_id, told(problem, workflow_id))
    if body.deep and body.workflow_id is None:
        for finding in desk.kit.store.check():
            progress.check()
            tally.add(finding.place, finding.problem, harm=finding.harm)
    progress.step(len(chosen), len(chosen))
    _tell(desk, body, tally)
    return StoreValidation(
        not tally.problem_count,
        tally.checkpoints,
        tally.events,
        tally.problem_count,
        tally.problems,
        tally.notes,
    )


def _check_workflow(desk: Desk, workflow_id: str, tally: _Tally, progress: Progress) -> None:
    reader = Reader(desk.kit)
    for listed in list_workflow(desk.kit.store, workflow_id):
        progress.check()
        tally.checkpoints += 1
        result = validate_listed(desk.kit, reader, listed)
        for problem in result.problems:
            tally.add(str(listed.found), problem)
        for note in result.notes:
            tally.add(str(listed.found), note, harm=False)


def _events(desk: Desk, workflow_id: str, progress: Progress) -> Iterator[None]:
    """Read the events of a workflow, each verified on top of the one before."""
    previous: str | None = None
    for line in desk.kit.store.events(workflow_id):
        progress.check()
        event = decode_event(line, previous)
        if previous is None and event.seq == 1:
            # Nothing was pruned before it, so the first one's hash can be checked as well.
            decode_event(line, GENESIS)
        previous = event.hash
        yield


def _tell(desk: Desk, body: Validate, tally: _Tally) -> None:
    facts = {"checkpoints": tally.checkpoints, "events": tally.events, "problems": tally.problem_count}
    outcome = Outcome.FAILURE if tally.problem_count else Outcome.SUCCESS
    desk.note(AuditType.CHECKPOINT_VALIDATED, body.workflow_id, facts, outcome=outcome)


def change_checkpoint(desk: Desk, asked: Asked[None, Change]) -> Answer:
    """Pin a checkpoint or leave it to retention again, and say something about it."""
    body = asked.body
    labels, note = _given(body.labels), _given(body.note)
    if body.pinned is UNSET and labels is None and note is None:
        raise Refusal(422, "invalid_request", "nothing is to be changed", hint="Send pinned, labels or note.")
    check_labels(labels or ())
    found = found_checkpoint(desk, asked.path["checkpoint"])
    version = _Version(desk.reader, asked.headers)
    version.check(found)
    begin(desk, asked, "changeCheckpoint", found.workflow_id)
    entry, said = _changed(desk, body, found.id, version)
    may_look = asked.identity.may(Scope.STATE_READ)
    standing = Standing(
        str(found),
        entry.pinned,
        entry.status,
        entry.retry_count,
        timestamp_text(desk.kit.clock.now()),
        list(said.labels),
        said.note if may_look else "",
    )
    return Answer(standing, 200, {"ETag": checkpoint_etag(entry, said.event_seq)})


class _Version:
    """How a checkpoint stands, held against If-Match each time that a change of it is planned."""

    def __init__(self, reader: Reader, headers: Mapping[str, str]) -> None:
        self._reader = reader
        self._headers = headers
        self.entry: Entry | None = None
        self.said = Annotation()

    def look(self, found: Checkpoint) -> None:
        """Remember how it stands."""
        self.entry, self.said = found.entry, annotation_of(self._reader, found)

    def check(self, found: Checkpoint) -> None:
        """Refuse a change of what is not as it was seen."""
        self.look(found)
        check_match(checkpoint_etag(found.entry, self.said.event_seq), self._headers)


def _changed(desk: Desk, body: Change, name: CheckpointID, version: _Version) -> tuple[Entry, Annotation]:
    """Change what is asked for if the version is still that one; answer how it stands by this change."""
    labels, note, recording = _given(body.labels), _given(body.note), desk.service.recording
    said, check = None, version.check
    if labels is not None or note is not None:
        said = recording.annotate(name, labels, note, check)
        # That was the version asked for; the other half belongs to it, whatever came in between.
        check = version.look
    pinned = _given(body.pinned)
    stands = None if pinned is None else recording.pin(name, check, is_kept=pinned)
    entry = version.entry
    assert entry is not None
    if stands is not None:
        status, retries = str(stands.status), stands.retry_count
        entry = replace(entry, status=status, retry_count=retries, pinned=stands.pinned)
    return entry, version.said if said is None else said


def _given(value: _T | UnsetType) -> _T | None:
    return None if isinstance(value, UnsetType) else value


OPERATIONS = (
    Operation(
        "validateCheckpoint",
        "POST",
        "/checkpoints/{checkpoint}/validate",
        Scope.WRITE,
        "Check that a checkpoint is what was committed.",
        validate_checkpoint,
        body=Acting,
        result=Validation,
        acts=True,
        tag="upkeep",
        problems=CHANGING,
    ),
    Operation(
        "validate",
        "POST",
        "/validate",
        Scope.WRITE,
        "Check a workflow, or all of them; the result of the operation tells what is damaged.",
        validate,
        body=Validate,
        result=OperationRow,
        status=202,
        acts=True,
        tag="upkeep",
        problems=CHANGING,
    ),
    Operation(
        "changeCheckpoint",
        "PATCH",
        "/checkpoints/{checkpoint}",
        Scope.WRITE,
        "Pin a checkpoint or unpin it, and give it labels and a note.",
        change_checkpoint,
        body=Change,
        result=Standing,
        acts=True,
        needs_version=True,
        tag="upkeep",
        problems={
            **CHANGING,
            412: "It was changed since it was looked at.",
            428: "If-Match is missing.",
        },
    ),
)
