"""What a new session finds when it takes over: the summary, what is open, and its workflows as they stand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.recovery.searching import Search
from holdfast.application.sessions.lenient_reading import LenientReader
from holdfast.application.sessions.passing_on import HANDED_OFF_EVENT, TAKEN_OVER_EVENT
from holdfast.application.trailing import Trail
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import has_ended
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointReadError,
    CheckpointSchemaError,
)
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import Head
from holdfast.domain.recovery import RecoveryMode
from holdfast.domain.replay import replay
from holdfast.domain.session_context import SessionContext, open_decisions
from holdfast.domain.state import WorkflowState

#: What Holdfast itself notes in a journal; nobody has to do anything about those.
_OWN_EVENTS = frozenset({*AuditType, "CHECKPOINT_STATUS", HANDED_OFF_EVENT, TAKEN_OVER_EVENT}) - {
    AuditType.TASK_ASSIGNED,
    AuditType.APPROVAL_REQUESTED,
}


@dataclass(frozen=True, slots=True)
class SessionWorkflow:
    """One workflow of a session as it stands.

    Attributes:
        checkpoint_id: what its state was restored from; None where there is none that verifies.
        state: that state, with the events since folded in.
        events_replayed: how many of those there were.
        has_ended: whether there is nothing left to do in it.
        warnings: what is different from an undisturbed run.
    """

    workflow_id: str
    checkpoint_id: CheckpointID | None = None
    state: WorkflowState | None = None
    events_replayed: int = 0
    has_ended: bool = False
    pending_events: tuple[Mapping[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionState:
    """Everything that a session begins with when it takes over from another.

    Attributes:
        session_id: the new session.
        previous_session_id: the one it took over from.
        is_handed_off: whether that one handed over; else it just stopped.
        context: what it gave: source and target agent, summary, payload, workflows.
        open_decisions: decisions that still matter, each with its `workflow_id`.
        pending_events: what happened and is in no state yet, each with its `workflow_id`.
        workflows: what it worked on, as it stands.
        trail_hash: hash of the last entry of the previous session's trail, which the new one's trail names.
        warnings: what to look at before going on.
    """

    session_id: str
    previous_session_id: str
    is_handed_off: bool
    context: SessionContext
    open_decisions: tuple[Mapping[str, Any], ...] = ()
    pending_events: tuple[Mapping[str, Any], ...] = ()
    workflows: tuple[SessionWorkflow, ...] = ()
    trail_hash: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def context_summary(self) -> str:
        """What was done and what comes next."""
        return self.context.summary

    @property
    def payload(self) -> Mapping[str, Any]:
        """Whatever else the previous session gave."""
        return self.context.payload

    def state(self, workflow_id: str | None = None) -> WorkflowState:
        """Answer the state of a workflow; that of the only one if none is named.

        Raises:
            CheckpointNotFoundError: the session has no such workflow, or none of its states can be read.
        """
        named = [one for one in self.workflows if workflow_id in (None, one.workflow_id)]
        if len(named) == 1 and named[0].state is not None:
            return named[0].state
        found = ", ".join(one.workflow_id for one in self.workflows) or "none"
        raise CheckpointNotFoundError(
            "there is no one state of that name in the session",
            place=workflow_id or self.session_id,
            hint=f"Its workflows are: {found}.",
        )

    def briefing(self) -> str:
        """Write all of it as text, to be the first message in a new context window."""
        return "\n".join(_briefing(self))


class Gathering:
    """Reads what a session worked on, without changing anything."""

    def __init__(self, kit: Kit, reader: Reader, trail: Trail | None = None) -> None:
        self._kit = kit
        self._reader = reader
        self._lenient = LenientReader(kit, trail)

    def workflow(self, workflow_id: str, session_id: str = "") -> SessionWorkflow:
        """Restore the newest state of a workflow that verifies, events since included.

        Args:
            session_id: the session that goes on with it; the state then says so.
        """
        try:
            return self._read(self._reader, workflow_id, session_id)
        except CheckpointSchemaError as problem:
            return self._read_as_far_as_known(workflow_id, session_id, problem)
        except CheckpointError as problem:
            return SessionWorkflow(workflow_id, warnings=(_unreadable(workflow_id, problem),))

    def _read_as_far_as_known(
        self, workflow_id: str, session_id: str, problem: CheckpointSchemaError
    ) -> SessionWorkflow:
        try:
            found = self._read(self._lenient, workflow_id, session_id)
        except CheckpointError:
            return SessionWorkflow(workflow_id, warnings=(_unreadable(workflow_id, problem),))
        said = f"{workflow_id} holds values of types that this program does not know ({problem.message})"
        return replace(found, warnings=(f"{said}; they are as they were stored.", *found.warnings))

    def _read(self, reader: Reader, workflow_id: str, session_id: str) -> SessionWorkflow:
        # Asked before: what others record while this is read is not lost.
        head = self._kit.store.head(workflow_id)
        way = Search(self._kit, reader).way(workflow_id, RecoveryMode.LATEST, None)
        events, problem = reader.events_as_far(workflow_id, way.event_seq)
        notes = (*way.notes, *_cut(workflow_id, events[-1].seq if events else way.event_seq, head, problem))
        pending = tuple(self._pending(events))
        fields = way.fields
        if way.found is None:
            if head.sequence or way.passed_over:
                hint = f"see `holdfast recover {workflow_id} --plan`"
                said = f"{workflow_id} has no checkpoint that verifies; {hint}."
                return SessionWorkflow(workflow_id, pending_events=pending, warnings=(said, *notes))
            notes = (f"{workflow_id} has no checkpoint yet: its state is what its events alone give.", *notes)
            fields = WorkflowState(workflow_id=workflow_id).to_fields()
        replayed = replay(fields, events, self._kit.app.reducers)
        state = WorkflowState.from_fields(replayed.fields)
        state.session_id = session_id or state.session_id
        if way.found is not None:
            state.checkpoint_id = str(way.checkpoint_id)
            reader.tell(AuditType.STATE_RESTORED, way.found)
        skipped = [
            f"{workflow_id}: event {one.seq} ({one.type}) was skipped: {one.reason}"
            for one in replayed.skipped
        ]
        return SessionWorkflow(
            workflow_id,
            way.checkpoint_id,
            state,
            replayed.count,
            way.newest is not None and has_ended(way.newest),
            (*_told(workflow_id, state.pending_events), *pending),
            (*notes, *skipped),
        )

    def _pending(self, events: Iterable[Event]) -> Iterable[Mapping[str, Any]]:
        """Answer the events that no reducer takes into a state, as the documents write pending events."""
        for event in events:
            if event.type not in self._kit.app.reducers and event.type not in _OWN_EVENTS:
                yield {
                    "workflow_id": event.workflow_id,
                    "event_type": event.type,
                    "source": event.agent,
                    "payload": event.data,
                    "seq": event.seq,
                }


def decisions_of(workflows: Iterable[SessionWorkflow]) -> tuple[Mapping[str, Any], ...]:
    """Answer the decisions that still matter."""
    found = [(one.workflow_id, one.state.decisions) for one in workflows if one.state is not None]
    return tuple(told for name, decisions in found for told in _told(name, open_decisions(decisions)))


def state_fields(state: SessionState, plain: Callable[[Any], Any]) -> dict[str, Any]:
    """Write everything that a session begins with for programs; `plain` makes values plain."""
    workflows = [
        {
            "workflow_id": one.workflow_id,
            "checkpoint": str(one.checkpoint_id) if one.checkpoint_id else None,
            "events_replayed": one.events_replayed,
            "has_ended": one.has_ended,
            "state": plain(one.state.to_fields()) if one.state else None,
        }
        for one in state.workflows
    ]
    return {
        "session_id": state.session_id,
        "previous_session_id": state.previous_session_id,
        "is_handed_off": state.is_handed_off,
        **plain(state.context.to_block()),
        "open_decisions": plain(list(state.open_decisions)),
        "pending_events": plain(list(state.pending_events)),
        "workflows": workflows,
        "trail_hash": state.trail_hash,
        "warnings": list(state.warnings),
    }


def _told(workflow_id: str, items: Iterable[Any]) -> Iterable[Mapping[str, Any]]:
    """Say of each item which workflow it is of; what is no object goes under `value`."""
    for item in items:
        yield {"workflow_id": workflow_id, **(item if isinstance(item, Mapping) else {"value": item})}


def _cut(workflow_id: str, last: int, head: Head, problem: CheckpointReadError | None) -> Iterable[str]:
    """Say that events after the last one that verifies are damaged or gone."""
    if problem is not None or last < head.event_seq:
        why = f" ({problem.message})" if problem is not None else ""
        yield (
            f"{workflow_id} is as of event {last}; later ones are damaged or gone{why}: "
            f"run `holdfast recover {workflow_id} --plan`."
        )


def _unreadable(workflow_id: str, problem: CheckpointError) -> str:
    hint = f"run `holdfast recover {workflow_id} --plan`"
    return f"{workflow_id} could not be restored ({problem.message}); {hint}."


def _briefing(state: SessionState) -> Iterable[str]:
    context = state.context
    how = "handed over" if state.is_handed_off else "stopped without handing over"
    yield f"# Session {state.session_id} continues {state.previous_session_id}, which {how}"
    for label, agent in (("from", context.source_agent), ("to", context.target_agent)):
        if agent is not None:
            yield f"- {label}: {' '.join(agent.to_fields().values())}"
    yield from _section("Summary", [context.summary] if context.summary else [], "")
    yield from _section("Workflows", [_workflow_line(one) for one in state.workflows])
    yield from _section("Open decisions", map(_json, state.open_decisions))
    yield from _section("Pending events", map(_json, state.pending_events))
    if context.payload:
        yield from _section("Payload", [_json(context.payload)], "")
    yield from _section("Look at this first", state.warnings)


def _section(title: str, lines: Iterable[str], mark: str = "- ") -> Iterable[str]:
    told = [mark + line for line in lines]
    return ["", f"## {title}", "", *told] if told else []


def _workflow_line(one: SessionWorkflow) -> str:
    if one.state is None:
        return f"{one.workflow_id}: no state"
    step = (
        f"step {one.state.current_step} of {one.state.total_steps}"
        if one.state.total_steps
        else one.state.status
    )
    ended = ", ended" if one.has_ended else ""
    summary = f": {one.state.context_summary}" if one.state.context_summary else ""
    from_where = one.checkpoint_id or f"{one.workflow_id}, no checkpoint yet"
    return f"{from_where}, {step}{ended}{summary}"


def _json(value: Any) -> str:
    """Write a value for somebody who reads; what JSON has no word for is spelled as Python does."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(value)
