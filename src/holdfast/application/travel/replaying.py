"""Running the reducers again over what is kept of a workflow, and comparing with what was stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from holdfast.application.commands import CheckpointName
from holdfast.application.kit import Kit
from holdfast.application.lenient import plain_again
from holdfast.application.resolve import Found, as_point, living, resolve
from holdfast.application.trailing import Trail
from holdfast.application.travel.explaining import Discrepancy, Kind, Path, explain
from holdfast.application.travel.travelling import Point, TimeTravel, is_by
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import UNUSABLE, CheckpointNotFoundError, InvalidIdError, InvalidStateError
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointRef
from holdfast.domain.replay import SkippedEvent, follow
from holdfast.domain.state import WorkflowState
from holdfast.domain.tree import at_path, copy_tree


@dataclass(frozen=True, slots=True)
class ReplayedStep:
    """The way to one checkpoint, or to the end, from the last one that could be used."""

    #: Checkpoints as `WF@3`; the end of what was asked for as `WF@event:9`.
    start: str
    end: str
    #: How many events lie between, how many of them changed the state, and which could not.
    events: int
    replayed: int
    skipped: tuple[SkippedEvent, ...] = ()
    #: Where the stored state is another than the replayed one.
    discrepancies: tuple[Discrepancy, ...] = ()
    #: Why there is no stored state to compare with; empty where there is, or none was to be expected.
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What came of running the reducers again."""

    workflow_id: str
    start: str
    steps: tuple[ReplayedStep, ...]

    def count(self, kind: Kind) -> int:
        """Count the places of one kind."""
        return sum(found.kind is kind for step in self.steps for found in step.discrepancies)

    @property
    def end(self) -> str:
        """How far it went."""
        return self.steps[-1].end if self.steps else self.start

    @property
    def facts(self) -> dict[str, int | str]:
        """What the trail is told about it."""
        return {"from": self.start, "to": self.end, "events": self.events}

    @property
    def events(self) -> int:
        return sum(step.events for step in self.steps)

    @property
    def replayed(self) -> int:
        return sum(step.replayed for step in self.steps)

    @property
    def skipped(self) -> tuple[SkippedEvent, ...]:
        return tuple(event for step in self.steps for event in step.skipped)

    @property
    def problems(self) -> tuple[str, ...]:
        """Checkpoints that could not be compared, and why."""
        return tuple(f"{step.end}: {step.problem}" for step in self.steps if step.problem)


class Replaying:
    """Replays workflows."""

    def __init__(self, kit: Kit, travel: TimeTravel, trail: Trail | None = None) -> None:
        self._kit = kit
        self._travel = travel
        self._trail = trail

    def check(
        self,
        workflow_id: str,
        start: CheckpointName | None = None,
        end: CheckpointName | None = None,
        *,
        goes_on: Callable[[ReplayedStep], bool] | None = None,
    ) -> ReplayReport:
        """Replay the events from one checkpoint to the next, all the way, and compare each with its state.

        Each part begins with the state that was stored: a difference is told once, where it came up.

        Args:
            workflow_id: the run.
            start: a checkpoint, or a point: then the checkpoint before it; the oldest kept by default.
            end: a checkpoint or a point; the last event by default.
            goes_on: told of each step; answers whether there shall be another.

        Raises:
            CheckpointNotFoundError: there is nothing to begin or to end with.
            InvalidIdError: the end lies before the beginning, or in another workflow.
            CheckpointCorruptError: the first checkpoint, or an event, is not what was committed.
        """
        first = self._first(workflow_id, start)
        ref = self._end(workflow_id, end)
        if not is_by(first.entry, ref):
            raise InvalidIdError(
                "the end lies before the beginning",
                place=f"{first} -> {ref}",
                hint="Begin with an earlier checkpoint, or end with a later one.",
            )
        steps = self._steps(first, ref)
        report = ReplayReport(workflow_id, str(first), tuple(_as_far_as(steps, goes_on)))
        if self._trail is not None:
            told = self._trail.told(AuditType.STATE_READ, workflow_id=workflow_id, facts=report.facts)
            self._trail.note(*told)
        return report

    def _first(self, workflow_id: str, start: CheckpointName | None) -> Found:
        ref = None if start is None else as_point(start)
        if start is not None and ref is None:
            return _of(workflow_id, resolve(self._kit.store, start))
        kept = living(self._kit.store, workflow_id)
        by = [entry for entry in kept if ref is None or is_by(entry, ref)]
        if not by:
            raise CheckpointNotFoundError(
                "there is no checkpoint to begin with",
                place=str(ref or workflow_id),
                hint="See `holdfast list` for what is there.",
            )
        return Found(workflow_id, by[-1] if ref is None else by[0])

    def _end(self, workflow_id: str, end: CheckpointName | None) -> CheckpointRef:
        if end is None:
            return CheckpointRef(workflow_id, event=self._kit.store.head(workflow_id).event_seq)
        ref = as_point(end)
        if ref is None:
            found = _of(workflow_id, resolve(self._kit.store, end))
            return CheckpointRef(workflow_id, event=found.entry.event_seq)
        if ref.workflow_id != workflow_id:
            raise _stranger(workflow_id, str(ref))
        return ref

    def _steps(self, first: Found, ref: CheckpointRef) -> Iterator[ReplayedStep]:
        """Go from checkpoint to checkpoint; one that cannot be used is told and passed over."""
        after = first.entry.event_seq
        kept = living(self._kit.store, first.workflow_id)
        ahead = {
            entry.event_seq: Found(first.workflow_id, entry)
            for entry in kept
            if entry.event_seq > after and is_by(entry, ref)
        }
        base, events = self._travel.readable(first), list[Event]()
        for event in self._travel.events(ref, after):
            events.append(event)
            if (found := ahead.get(event.seq)) is None:
                continue
            try:
                stored = self._travel.readable(found)
            except UNUSABLE as problem:
                yield ReplayedStep(str(base.found), str(found), 0, 0, problem=problem.message)
                continue
            yield self._compared(base, stored, events)
            base, events = stored, []
        if events:
            done = self._travel.replayed(base, iter(events))
            end = f"{first.workflow_id}@event:{events[-1].seq}"
            yield ReplayedStep(str(base.found), end, len(events), done.count, done.skipped)

    def _compared(self, base: Point, stored: Point, events: list[Event]) -> ReplayedStep:
        done = self._travel.replayed(base, iter(events))
        tree = plain_again(_normal(done.fields), self._kit.registry, self._kit.packer)
        found = list(explain(base.tree, tree, stored.tree, self._kit.packer))
        return ReplayedStep(
            str(base.found),
            str(stored.found),
            len(events),
            done.count,
            done.skipped,
            tuple(self._attributed(base, events, found)),
        )

    def _attributed(self, base: Point, events: list[Event], found: list[Discrepancy]) -> list[Discrepancy]:
        """Find out which event touched the places last, by looking at them after each."""
        places = [one.path for one in found if one.kind is not Kind.UNEXPLAINED]
        if not places:
            return found
        touched: dict[Path, int] = {}
        fields = self._travel.values(base)
        was = {path: copy_tree(at_path(fields, path)) for path in places}
        readable = map(self._travel.with_values, events)
        for event, after in follow(fields, readable, self._kit.app.reducers):
            for path in places:
                made = at_path(after, path)
                if was[path] is not made and was[path] != made:
                    touched[path], was[path] = event.seq, copy_tree(made)
        return [replace(one, event_seq=touched.get(one.path)) for one in found]


def _normal(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a state leaves out when it is stored."""
    try:
        return WorkflowState.from_fields(fields).to_fields()
    except InvalidStateError:
        return fields


def _of(workflow_id: str, found: Found) -> Found:
    if found.workflow_id != workflow_id:
        raise _stranger(workflow_id, str(found))
    return found


def _stranger(workflow_id: str, place: str) -> InvalidIdError:
    return InvalidIdError(
        f"this is no point of {workflow_id}", place=place, hint="A replay stays in one workflow."
    )


def _as_far_as(
    steps: Iterator[ReplayedStep], goes_on: Callable[[ReplayedStep], bool] | None
) -> Iterator[ReplayedStep]:
    """Yield steps until somebody has seen enough."""
    for step in steps:
        yield step
        if goes_on is not None and not goes_on(step):
            return
