"""What the executor puts into a workflow's journal, and what that means for the state.

The executor folds its own events onto the state it works with by these same functions: a state that was
recovered is the one it had.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.domain.event import Event
from holdfast.domain.reducers import Fields, Reducer
from holdfast.domain.time import timestamp_text

AGENT_STARTED = "AGENT_STARTED"
AGENT_COMPLETED = "AGENT_COMPLETED"
AGENT_FAILED = "AGENT_FAILED"
AGENT_SKIPPED = "AGENT_SKIPPED"
STAGE_UPDATED = "STAGE_UPDATED"
EFFECT_STARTED = "EFFECT_STARTED"
EFFECT_DONE = "EFFECT_DONE"
MILESTONE_REACHED = "MILESTONE_REACHED"
APPROVAL_REQUESTED = "APPROVAL_REQUESTED"
APPROVAL_GRANTED = "APPROVAL_GRANTED"
APPROVAL_DENIED = "APPROVAL_DENIED"
RUN_UPDATED = "RUN_UPDATED"
REQUEST_SETTLED = "REQUEST_SETTLED"

#: What an agent keeps in the state once it is done; its ledger and milestones stay in the journal.
_KEPT_WHEN_DONE = ("attempt", "confidence", "progress", "blockers", "artifacts")
#: And what it was begun with: a spawned one is known by that when its parent runs again.
_KEPT_FROM_START = (*_KEPT_WHEN_DONE, "given")
#: How many requests that were carried out are remembered: one that is delivered again is known.
_SETTLED_MAX = 100


def start_agent(fields: Fields, event: Event) -> dict[str, Any]:
    """Note that an attempt began; what earlier attempts left stays."""
    return _with_agent(fields, event, {"status": "running", **event.data})


def complete_agent(fields: Fields, event: Event) -> dict[str, Any]:
    """Take an agent's result, and everything it said on the way, into the state at once."""
    data = event.data
    known = _agents(fields).get(event.step_id, {})
    kept = {name: known[name] for name in _KEPT_FROM_START if name in known}
    kept |= {name: data[name] for name in _KEPT_WHEN_DONE if name in data}
    task = {
        "id": event.step_id,
        "agent": event.agent,
        "result": data.get("result"),
        "attempt": data.get("attempt", 1),
        "ended_at": timestamp_text(event.timestamp),
        "duration_seconds": data.get("duration_seconds"),
    }
    if "given" in data:
        # Tells the calls of a durable function's steps apart.
        task["given"] = data["given"]
    state = {
        **fields,
        "tasks": [*fields.get("tasks", ()), task],
        "agent_states": {**_agents(fields), event.step_id: {"status": "completed", **kept}},
        "current_step": fields.get("current_step", 0) + 1,
    }
    following = data.get("next")
    if following is not None:
        # What begins right after is recorded with the result before, as one fact.
        started = {"status": "running", "attempt": following["attempt"]}
        before = state["agent_states"].get(following["step_id"], {})
        state["agent_states"][following["step_id"]] = {**before, **started}
    return _with_notes(state, event)


def fail_agent(fields: Fields, event: Event) -> dict[str, Any]:
    """Note a failed attempt: nothing that it said becomes part of the state but its confidence."""
    update = {name: event.data[name] for name in ("status", "error", "attempt") if name in event.data}
    state = _with_agent(fields, event, {"status": "failed", **update})
    return _with_confidence(state, event)


def skip_agent(fields: Fields, event: Event) -> dict[str, Any]:
    """Note that an agent was not needed, and why; nobody waits for what it asked."""
    return skip_step(fields, str(event.step_id), event.data)


def skip_step(fields: Fields, step_id: str, told: Mapping[str, Any]) -> dict[str, Any]:
    """Put down a step as not needed, and close the questions that it and what it spawned still ask."""
    agents = dict(_agents(fields))
    agents[step_id] = {**agents.get(step_id, {}), "status": "skipped", **told}
    for name, state in agents.items():
        if (name == step_id or str(name).startswith(f"{step_id}>")) and _mapping(state).get("approvals"):
            agents[name] = {**state, "approvals": _settled(state["approvals"])}
    return {**fields, "agent_states": agents}


def update_stage(fields: Fields, event: Event) -> dict[str, Any]:
    """Merge what is known of a stage: its items, its iterations, whether it is done."""
    stages = fields.get("stage_states", {})
    merged = {**stages.get(event.data["stage"], {}), **event.data["state"]}
    state = {**fields, "stage_states": {**stages, event.data["stage"]: merged}}
    if "phase" in event.data:
        state["phase"] = event.data["phase"]
    return state


def start_effect(fields: Fields, event: Event) -> dict[str, Any]:
    """Note that something outside is about to be changed."""
    return _with_ledger(fields, event, {"status": "started", **event.data})


def end_effect(fields: Fields, event: Event) -> dict[str, Any]:
    """Note what came of a change outside."""
    return _with_ledger(fields, event, {"status": "done", **event.data})


def reach_milestone(fields: Fields, event: Event) -> dict[str, Any]:
    """Keep where an agent can go on from."""
    return _with_agent(fields, event, {"milestone": dict(event.data)})


def request_approval(fields: Fields, event: Event) -> dict[str, Any]:
    """Note that an agent waits for somebody's answer."""
    # Whatever the question comes with: it is open, and no answer from before is one to it.
    asked_at = timestamp_text(event.timestamp)
    return _with_approval(fields, event, {**event.data, "status": "waiting", "asked_at": asked_at})


def answer_approval(fields: Fields, event: Event) -> dict[str, Any]:
    """Note the answer."""
    status = "granted" if event.type == APPROVAL_GRANTED else "denied"
    return _with_approval(fields, event, {**event.data, "status": status})


def update_run(fields: Fields, event: Event) -> dict[str, Any]:
    """Set how the run as a whole stands."""
    return {**fields, **event.data["fields"]}


def settle_request(fields: Fields, event: Event) -> dict[str, Any]:
    """Remember a request that was carried out, so that it is not when it comes again."""
    metadata = fields.get("metadata", {})
    settled = [*metadata.get("settled_requests", ()), event.data["id"]][-_SETTLED_MAX:]
    known = {**metadata, "settled_requests": settled}
    if "ends_as" in event.data:
        # Who dies on the way there has still been asked: whoever goes on brings it to that end.
        known["ends_as"] = event.data["ends_as"]
    return {**fields, "metadata": known}


def open_questions(fields: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """List step, name and particulars of each approval that is waited for; the state may be anybody's."""
    return [
        (step_id, name, asked)
        for step_id, state in _mapping(fields.get("agent_states")).items()
        for name, asked in _mapping(_mapping(state).get("approvals")).items()
        if _mapping(asked).get("status") == "waiting"
    ]


def _settled(approvals: Any) -> Any:
    """Leave out the questions that are open: whoever asks them again, asks anew."""
    waiting = [
        name for name, asked in _mapping(approvals).items() if _mapping(asked).get("status") == "waiting"
    ]
    return {name: asked for name, asked in approvals.items() if name not in waiting} if waiting else approvals


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _agents(fields: Fields) -> dict[Any, Any]:
    agents: dict[Any, Any] = fields.get("agent_states", {})
    return agents


def _with_agent(fields: Fields, event: Event, update: Mapping[str, Any]) -> dict[str, Any]:
    agents = _agents(fields)
    merged = {**agents.get(event.step_id, {}), **update}
    return {**fields, "agent_states": {**agents, event.step_id: merged}}


def _with_ledger(fields: Fields, event: Event, update: Mapping[str, Any]) -> dict[str, Any]:
    effects = _agents(fields).get(event.step_id, {}).get("effects", {})
    name = update["name"]
    merged = {**effects, name: {**effects.get(name, {}), **update}}
    return _with_agent(fields, event, {"effects": merged})


def _with_approval(fields: Fields, event: Event, update: Mapping[str, Any]) -> dict[str, Any]:
    approvals = _agents(fields).get(event.step_id, {}).get("approvals", {})
    name = update["name"]
    merged = {**approvals, name: {**approvals.get(name, {}), **update}}
    return _with_agent(fields, event, {"approvals": merged})


def _with_notes(state: dict[str, Any], event: Event) -> dict[str, Any]:
    """Add what an agent said while it worked."""
    data = event.data
    for name in ("messages", "outputs"):
        if data.get(name):
            state[name] = [*state.get(name, ()), *data[name]]
    if data.get("context"):
        state["context"] = {**state.get("context", {}), **data["context"]}
    if data.get("metrics"):
        state["metrics"] = added(state.get("metrics", {}), data["metrics"])
    return _with_confidence(state, event)


def _with_confidence(state: dict[str, Any], event: Event) -> dict[str, Any]:
    if event.data.get("confidence") is None:
        return state
    known = state.get("confidence")
    subjects = known if isinstance(known, Mapping) else {}
    return {**state, "confidence": {**subjects, event.step_id: event.data["confidence"]}}


def added(metrics: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Add numbers up by name; what is no number replaces what was there."""
    summed = dict(metrics)
    for name, value in more.items():
        known = summed.get(name, 0)
        can_be_added = is_number(value) and is_number(known)
        summed[name] = known + value if can_be_added else value
    return summed


def is_number(value: Any) -> bool:
    """Tell whether something can be added up."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ours(reducer: Reducer, *needed: str) -> Reducer:
    """Leave events alone that an application recorded under the same type in its own way."""

    def reduce_ours(fields: Fields, event: Event) -> dict[str, Any]:
        is_ours = event.step_id is not None and all(name in event.data for name in needed)
        return reducer(fields, event) if is_ours else dict(fields)

    return reduce_ours


_SHAPED: Mapping[str, tuple[Reducer, tuple[str, ...]]] = {
    AGENT_STARTED: (start_agent, ("attempt",)),
    AGENT_COMPLETED: (complete_agent, ("attempt",)),
    AGENT_FAILED: (fail_agent, ("attempt",)),
    AGENT_SKIPPED: (skip_agent, ("reason",)),
    STAGE_UPDATED: (update_stage, ("stage", "state")),
    EFFECT_STARTED: (start_effect, ("name", "key")),
    EFFECT_DONE: (end_effect, ("name", "key")),
    MILESTONE_REACHED: (reach_milestone, ("name", "state")),
    APPROVAL_REQUESTED: (request_approval, ("name",)),
    APPROVAL_GRANTED: (answer_approval, ("name",)),
    APPROVAL_DENIED: (answer_approval, ("name",)),
    RUN_UPDATED: (update_run, ("fields",)),
    REQUEST_SETTLED: (settle_request, ("id",)),
}
RUN_REDUCERS: Mapping[str, Reducer] = {
    kind: _ours(reducer, *needed) for kind, (reducer, needed) in _SHAPED.items()
}
