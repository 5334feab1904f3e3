"""What events mean for a state: one small function for each type, folding a fact onto the fields.

A reducer never changes what it is given; unchanged parts are shared. Types without one change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.domain.errors import EventReplayFailedError, InvalidStateError
from holdfast.domain.event import Event
from holdfast.domain.time import timestamp_text

DECISION_EVENT = "DECISION_RECORDED"
AGENT_STATE_EVENT = "AGENT_STATE_UPDATED"
MESSAGE_EVENT = "MESSAGE_ADDED"
TASK_EVENT = "TASK_UPDATED"
OUTPUT_EVENT = "OUTPUT_RECORDED"
CONTEXT_EVENT = "CONTEXT_UPDATED"

Fields = Mapping[str, Any]
Reducer = Callable[[Fields, Event], dict[str, Any]]


def reduce(
    fields: Fields, events: Iterable[Event], reducers: Mapping[str, Reducer] | None = None
) -> dict[str, Any]:
    """Fold events onto the fields of a state, in order.

    Args:
        fields: the fields, as `WorkflowState.to_fields` gives them.
        events: what happened since.
        reducers: by event type; the built-in ones by default.

    Raises:
        EventReplayFailedError: an event does not fit the state; names it.
    """
    known = REDUCERS if reducers is None else reducers
    state = dict(fields)
    for event in events:
        reducer = known.get(event.type)
        if reducer is None:
            continue
        try:
            state = reducer(state, event)
        except (KeyError, TypeError, ValueError, AttributeError) as fault:
            raise EventReplayFailedError(
                f"event {event.seq} ({event.type}) does not fit the state ({fault!r})",
                place=event.workflow_id,
                hint="Skip it, or register a reducer that handles it.",
            ) from fault
    return state


def check_confidence(value: float | None, place: str = "") -> None:
    """Refuse what says of no decision or result how sure somebody is of it.

    Raises:
        InvalidStateError: it is no number from 0 to 1.
    """
    if value is not None and not (isinstance(value, int | float) and 0 <= value <= 1):
        raise InvalidStateError(f"{value!r} is no confidence", place=place, hint="Give 0 to 1.")


def add_decision(fields: Fields, event: Event) -> dict[str, Any]:
    """Append a decision, with who made it and when."""
    return _appended(fields, "decisions", decision_of(event))


def decision_of(event: Event) -> dict[str, Any]:
    """Put together what a state keeps of a decision."""
    decision = {**event.data, "ts": timestamp_text(event.timestamp)}
    if event.agent is not None:
        decision["agent"] = event.agent
    return decision


def merge_agent_state(fields: Fields, event: Event) -> dict[str, Any]:
    """Merge what an agent reports into its state."""
    if event.agent is None:
        raise ValueError("it names no agent")
    known = fields.get("agent_states", {})
    merged = {**known.get(event.agent, {}), **event.data["state"]}
    return {**fields, "agent_states": {**known, event.agent: merged}}


def add_message(fields: Fields, event: Event) -> dict[str, Any]:
    """Append a message."""
    return _appended(fields, "messages", event.data["message"])


def put_task(fields: Fields, event: Event) -> dict[str, Any]:
    """Merge a task into the one with its id, or append it."""
    task = event.data["task"]
    tasks = list(fields.get("tasks", []))
    for place, known in enumerate(tasks):
        if isinstance(known, Mapping) and known.get("id") == task["id"]:
            tasks[place] = {**known, **task}
            return {**fields, "tasks": tasks}
    return {**fields, "tasks": [*tasks, task]}


def put_output(fields: Fields, event: Event) -> dict[str, Any]:
    """Append an output, or set it by its name where outputs are an object."""
    outputs = fields.get("outputs", [])
    if isinstance(outputs, Mapping):
        return {**fields, "outputs": {**outputs, event.data["name"]: event.data["value"]}}
    return {**fields, "outputs": [*outputs, event.data["value"]]}


def merge_context(fields: Fields, event: Event) -> dict[str, Any]:
    """Merge keys into the context."""
    return {**fields, "context": {**fields.get("context", {}), **event.data["context"]}}


def _appended(fields: Fields, name: str, item: Any) -> dict[str, Any]:
    return {**fields, name: [*fields.get(name, []), item]}


REDUCERS: Mapping[str, Reducer] = {
    DECISION_EVENT: add_decision,
    AGENT_STATE_EVENT: merge_agent_state,
    MESSAGE_EVENT: add_message,
    TASK_EVENT: put_task,
    OUTPUT_EVENT: put_output,
    CONTEXT_EVENT: merge_context,
}
