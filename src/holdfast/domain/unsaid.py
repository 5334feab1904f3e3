"""Taking back what steps of a run said, where they are to be taken again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from holdfast.domain.event import Event
from holdfast.domain.reducers import DECISION_EVENT, Fields, decision_of
from holdfast.domain.run_events import AGENT_COMPLETED, added, is_number


def unsaid(fields: Fields, events: Sequence[Event], is_gone: Callable[[str], bool]) -> dict[str, Any]:
    """Answer a state without what some steps said in it; what others said stays.

    Args:
        fields: the state.
        events: the journal that it comes from.
        is_gone: tells which steps are forgotten.
    """
    told = [event for event in events if event.type == AGENT_COMPLETED and event.step_id is not None]
    gone = [event for event in told if is_gone(str(event.step_id))]
    kept = [event for event in told if not is_gone(str(event.step_id))]
    decided = [event for event in events if event.type == DECISION_EVENT and event.step_id is not None]
    decisions = [decision_of(event) for event in decided if is_gone(str(event.step_id))]
    state = {**fields, "decisions": _less(fields.get("decisions", []), decisions)}
    for name in ("messages", "outputs"):
        said = [one for event in gone for one in event.data.get(name, ())]
        state[name] = _less(fields.get(name, []), said)
    confidence = fields.get("confidence")
    if isinstance(confidence, Mapping):
        state["confidence"] = {step: value for step, value in confidence.items() if not is_gone(str(step))}
    state["context"] = _remembered(fields.get("context", {}), gone, kept)
    state["metrics"] = _used(fields.get("metrics", {}), gone, told)
    return state


def _less(values: Any, gone: Iterable[Any]) -> Any:
    """Take each of some values out of a list once; what an application keeps there otherwise stays."""
    if not isinstance(values, list):
        return values
    left = list(values)
    for one in gone:
        if one in left:
            left.remove(one)
    return left


def _remembered(context: Mapping[str, Any], gone: Sequence[Event], kept: Sequence[Event]) -> dict[str, Any]:
    """Let values be what those who stay had set them to."""
    names = {name for event in gone for name in event.data.get("context", {})}
    left = {name: value for name, value in context.items() if name not in names}
    for event in kept:
        said = event.data.get("context", {})
        left |= {name: value for name, value in said.items() if name in names}
    return left


def _used(metrics: Mapping[str, Any], gone: Sequence[Event], told: Sequence[Event]) -> dict[str, Any]:
    """Take numbers off again; where agents alone made them, they are added up anew, which is exact."""
    total, kept = dict[str, Any](), dict[str, Any]()
    for event in told:
        total = added(total, event.data.get("metrics", {}))
        if event not in gone:
            kept = added(kept, event.data.get("metrics", {}))
    left = dict(metrics)
    for name in {name for event in gone for name in event.data.get("metrics", {})} & metrics.keys():
        if metrics[name] == total[name] or not is_number(metrics[name]):
            left.pop(name)
            left |= {name: kept[name]} if name in kept else {}
            continue
        said = [event.data.get("metrics", {}).get(name) for event in gone]
        left[name] -= sum(value for value in said if is_number(value))
    return left
