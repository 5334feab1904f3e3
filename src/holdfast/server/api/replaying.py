"""Running the reducers again, and comparing with what is stored: where events and states differ."""

from __future__ import annotations

from functools import partial

import msgspec

from holdfast.application.reading import Reader
from holdfast.application.resolve import Found
from holdfast.application.travel.explaining import Kind
from holdfast.application.travel.replaying import ReplayedStep, Replaying, ReplayReport
from holdfast.application.travel.travelling import Point, TimeTravel
from holdfast.domain.access import Scope
from holdfast.domain.audit_type import AuditType
from holdfast.domain.replay import SkippedEvent
from holdfast.server.acting import CHANGING, Acting, Name, begin
from holdfast.server.api.reading import check_meaning, check_there
from holdfast.server.desk import Desk
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.operations import OperationRow, Progress

_NAMED_MAX = 500


class Replay(Acting):
    """What to run again."""

    workflow_id: Name
    #: `WF@3`, `WF@event:9` or `WF@time:...`; the oldest checkpoint that is kept by default.
    start: Name | None = None
    #: The same; the last event by default.
    end: Name | None = None


class Difference(msgspec.Struct):
    """One place where a stored state is another; what stands there is for whoever may read states."""

    kind: Kind
    pointer: str
    event_seq: int | None


class ReplayStep(msgspec.Struct):
    """The way to one checkpoint, or to the end."""

    start: str
    end: str
    events: int
    replayed: int
    skipped: list[SkippedEvent]
    differences: list[Difference]
    problem: str


class Replayed(msgspec.Struct):
    """What came of it: a divergence is an event that says one thing and a stored state another."""

    workflow_id: str
    start: str
    end: str
    events: int
    replayed: int
    diverged: int
    left_out: int
    unexplained: int
    #: Those where there is something to tell.
    steps: list[ReplayStep]
    #: Whether there are more.
    is_cut: bool


class _WatchedTravel(TimeTravel):
    """Tells how far a replay is, one checkpoint after the other."""

    def __init__(self, desk: Desk, progress: Progress, total: int) -> None:
        super().__init__(desk.kit, None, Reader(desk.kit))
        self._progress = progress
        self._total = total

    def readable(self, found: Found, *, is_strict: bool = False) -> Point:
        """Restore a checkpoint, unless nobody wants it any more."""
        self._progress.step(min(self._progress.steps.done + 1, self._total), self._total)
        return super().readable(found, is_strict=is_strict)


def replay(desk: Desk, asked: Asked[None, Replay]) -> Answer:
    """Run the reducers again; nothing in the workflow is changed."""
    body = asked.body
    check_there(desk, body.workflow_id)
    for name in filter(None, (body.start, body.end)):
        check_meaning(desk, name)
    begin(desk, asked, "replay", body.workflow_id)
    return desk.operations.start(
        "replay",
        partial(_replay, desk, body),
        asked,
        scope=Scope.RECOVER,
        workflow_id=body.workflow_id,
        unit="checkpoints",
    )


def _replay(desk: Desk, body: Replay, progress: Progress) -> Replayed:
    total = sum(not entry.pruned for entry in desk.kit.store.entries(body.workflow_id))
    travel = _WatchedTravel(desk, progress, total)
    report = Replaying(desk.kit, travel).check(body.workflow_id, body.start, body.end)
    desk.note(AuditType.STATE_READ, body.workflow_id, report.facts)
    return _replayed(report)


def _replayed(report: ReplayReport) -> Replayed:
    telling = [step for step in report.steps if step.skipped or step.discrepancies or step.problem]
    is_cut = len(telling) > _NAMED_MAX or any(len(step.discrepancies) > _NAMED_MAX for step in telling)
    return Replayed(
        report.workflow_id,
        report.start,
        report.end,
        report.events,
        report.replayed,
        report.count(Kind.DIVERGED),
        report.count(Kind.LEFT_OUT),
        report.count(Kind.UNEXPLAINED),
        [_step(step) for step in telling[:_NAMED_MAX]],
        is_cut,
    )


def _step(step: ReplayedStep) -> ReplayStep:
    differences = [
        Difference(one.kind, _pointer(one.path), one.event_seq) for one in step.discrepancies[:_NAMED_MAX]
    ]
    skipped = list(step.skipped[:_NAMED_MAX])
    return ReplayStep(step.start, step.end, step.events, step.replayed, skipped, differences, step.problem)


def _pointer(path: tuple[str | int, ...]) -> str:
    """Write a path as a JSON Pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


OPERATIONS = (
    Operation(
        "replay",
        "POST",
        "/replay",
        Scope.RECOVER,
        "Run the reducers again and compare; the operation tells where events and states differ.",
        replay,
        body=Replay,
        result=OperationRow,
        status=202,
        acts=True,
        tag="recovery",
        problems=CHANGING,
    ),
)
