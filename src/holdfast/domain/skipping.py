"""Which steps of a run are left out where an agent is to be skipped: those that have no result yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.domain.run_events import open_questions, skip_step

#: How a run stands that has still something to do, and waits for nobody.
GOING_ON = "in_progress"
#: Mark items, rounds and children in the names of steps.
_MARKS = re.compile(r"[\[#>]")


def agent_of(step_id: str) -> str:
    """Name the agent of a step, or of what it spawned."""
    return _MARKS.split(step_id, maxsplit=1)[0]


def known_agents(fields: Mapping[str, Any]) -> list[str]:
    """Name the agents that a state knows: those of its graph, and those that were at work."""
    declared = (agent.get("name") for stage in _stages(fields) for agent in _dicts(stage.get("agents")))
    at_work = map(agent_of, _mapping(fields.get("agent_states")))
    return list(dict.fromkeys(name for name in (*declared, *at_work) if isinstance(name, str)))


def steps_to_skip(fields: Mapping[str, Any], agent: str) -> tuple[str, ...]:
    """Name the steps that an agent has still to do; none where all of it is over.

    Of an agent of a loop these are the steps of the round it is in: there may be others after it.
    """
    ended = set(_ended(fields))
    open_steps = [step for step in _begun(fields, agent) if step not in ended]
    open_steps += [step for step in _planned(fields, agent) if step not in (*ended, *open_steps)]
    return tuple(open_steps)


def is_skipped(fields: Mapping[str, Any], agent: str) -> bool:
    """Tell whether an agent was skipped before, in a step at least."""
    states = _mapping(fields.get("agent_states"))
    return any(_mapping(states[step]).get("status") == "skipped" for step in _begun(fields, agent))


def is_loop_ahead(fields: Mapping[str, Any], agent: str) -> bool:
    """Tell whether an agent is one of a loop that has not begun."""
    home = _home(fields, agent)
    if home is None or not _is_loop(fields, home) or home.get("name") in _mapping(fields.get("stage_states")):
        return False
    names = [one.get("name") for one in _dicts(home.get("agents"))]
    return not any(agent_of(step) in names for step in _mapping(fields.get("agent_states")))


def is_freed(fields: Mapping[str, Any], steps: Iterable[str]) -> bool:
    """Tell whether a run waits for answers, and for none any more once steps are skipped."""
    return fields.get("status") == "waiting" and not open_questions(_skipped(fields, steps, {}))


def with_skipped(
    fields: Mapping[str, Any], steps: Iterable[str], told: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Answer a state in which steps are skipped, with what is told of that."""
    skipped = _skipped(fields, steps, told)
    return {**skipped, "status": GOING_ON} if is_freed(fields, steps) else skipped


def _skipped(fields: Mapping[str, Any], steps: Iterable[str], told: Mapping[str, Any]) -> Mapping[str, Any]:
    for step in steps:
        fields = skip_step(fields, step, told)
    return fields


def _begun(fields: Mapping[str, Any], agent: str) -> Iterator[str]:
    for step in _mapping(fields.get("agent_states")):
        # What an agent spawned is left out with it.
        if agent_of(step) == agent and ">" not in step:
            yield step


def _ended(fields: Mapping[str, Any]) -> Iterator[str]:
    yield from (str(task["id"]) for task in _dicts(fields.get("tasks")) if {"id", "result"} <= task.keys())
    for step, state in _mapping(fields.get("agent_states")).items():
        if isinstance(state, Mapping) and state.get("status") in ("completed", "skipped"):
            yield step


def _planned(fields: Mapping[str, Any], agent: str) -> Iterator[str]:
    """Name the steps of an agent as the graph tells them, begun or not."""
    home = _home(fields, agent)
    if home is None or _is_loop(fields, home):
        # Which round comes next is not known here.
        return
    items = _items(fields, agent)
    if items is None:
        yield agent
        return
    yield from (f"{agent}[{item['key']}]" for item in items if "key" in item)


def _items(fields: Mapping[str, Any], agent: str) -> list[Mapping[str, Any]] | None:
    """Answer what an agent runs for; None where it runs once, or its items are not settled yet."""
    for state in _mapping(fields.get("stage_states")).values():
        known = _mapping(state).get("items") if isinstance(state, Mapping) else None
        if agent in _mapping(known):
            return list(_dicts(_mapping(known)[agent]))
    return None


def _graph(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return _mapping(fields.get("dag_structure"))


def _stages(fields: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return _dicts(_graph(fields).get("stages"))


def _home(fields: Mapping[str, Any], agent: str) -> Mapping[str, Any] | None:
    return next((stage for stage in _stages(fields) if _has(stage, agent)), None)


def _is_loop(fields: Mapping[str, Any], stage: Mapping[str, Any]) -> bool:
    return stage.get("name") in _mapping(_graph(fields).get("limits"))


def _has(stage: Mapping[str, Any], agent: str) -> bool:
    return any(one.get("name") == agent for one in _dicts(stage.get("agents")))


def _mapping(value: object) -> Mapping[str, Any]:
    """Take what a state holds; an application may keep something of its own there."""
    return value if isinstance(value, Mapping) else {}


def _dicts(value: object) -> Iterator[Mapping[str, Any]]:
    found = value if isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping)) else ()
    return (one for one in found if isinstance(one, Mapping))
