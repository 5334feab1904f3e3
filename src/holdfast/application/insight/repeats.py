"""What going back to a point costs: steps lost, steps that run again, effects that may happen twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.resolve import resolve
from holdfast.application.travel.travelling import TimeTravel
from holdfast.domain.errors import CheckpointError
from holdfast.domain.event import Event
from holdfast.domain.run_events import AGENT_COMPLETED, EFFECT_DONE, EFFECT_STARTED

#: So many of each are named.
NAMED_MAX = 500


class Doubt(StrEnum):
    """Why an effect may happen twice."""

    #: It was started, and nobody knows whether it happened.
    UNKNOWN = "unknown"
    #: It happened after the point, whose ledger does not know of it.
    FORGOTTEN = "forgotten"


@dataclass(frozen=True, slots=True)
class StepAt:
    """A step, and the event that tells of it; None where that is the state itself."""

    step_id: str
    agent: str | None
    event_seq: int | None = None


@dataclass(frozen=True, slots=True)
class EffectAt:
    """An effect that may happen twice: `key` is what the other side may know it by."""

    step_id: str
    name: str
    key: str
    doubt: Doubt
    event_seq: int | None = None


@dataclass(frozen=True, slots=True)
class Repeats:
    """What going back costs.

    Attributes:
        steps_lost: had ended, and their results are not in the state.
        steps_repeated: had begun or failed, and run again.
        notes: what could not be looked at.
    """

    steps_lost: tuple[StepAt, ...] = ()
    steps_repeated: tuple[StepAt, ...] = ()
    effects_at_risk: tuple[EffectAt, ...] = ()
    notes: tuple[str, ...] = ()


def repeats_of(kit: Kit, workflow_id: str, target_sequence: int | None = None) -> Repeats:
    """Tell what work costs that goes on from a checkpoint, or from the last event.

    Raises:
        CheckpointNotFoundError: there is no such checkpoint.
    """
    reader = Reader(kit)
    travel = TimeTravel(kit, None, reader)
    if target_sequence is None:
        return _from_end(travel, workflow_id, kit.store.head(workflow_id).event_seq)
    found = resolve(kit.store, f"{workflow_id}@{target_sequence}")
    try:
        fields = travel.checkpoint(found).tree
        since = list(_since(reader, workflow_id, found.entry.event_seq))
    except CheckpointError as problem:
        return Repeats(notes=(_unseen(problem),))
    lost = [StepAt(one.step_id or "", one.agent, one.seq) for one in since if one.type == AGENT_COMPLETED]
    at_risk = {(one.step_id, one.name): one for one in (*_unknown(fields), *_forgotten(since))}
    return Repeats(
        tuple(lost[:NAMED_MAX]),
        tuple(islice(_begun(fields), NAMED_MAX)),
        tuple(islice(at_risk.values(), NAMED_MAX)),
    )


def _from_end(travel: TimeTravel, workflow_id: str, last: int) -> Repeats:
    try:
        fields = travel.at(f"{workflow_id}@event:{last}").tree if last else {}
    except CheckpointError as problem:
        return Repeats(notes=(_unseen(problem),))
    return Repeats(
        steps_repeated=tuple(islice(_begun(fields), NAMED_MAX)),
        effects_at_risk=tuple(islice(_unknown(fields), NAMED_MAX)),
    )


def _unseen(problem: CheckpointError) -> str:
    return f"which steps and effects would be repeated cannot be told ({problem.message})"


def _since(reader: Reader, workflow_id: str, after: int) -> Iterator[Event]:
    wanted = (AGENT_COMPLETED, EFFECT_STARTED, EFFECT_DONE)
    events = reader.opened_events(workflow_id, after)
    return (event for event in events if event.seq > after and event.type in wanted and event.step_id)


def _states(fields: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    states = fields.get("agent_states")
    for step_id, state in states.items() if isinstance(states, Mapping) else ():
        if isinstance(state, Mapping):
            yield step_id, state


def _begun(fields: Mapping[str, Any]) -> Iterator[StepAt]:
    for step_id, state in _states(fields):
        if state.get("status") in ("running", "failed"):
            agent = state.get("agent")
            yield StepAt(step_id, agent if isinstance(agent, str) else None)


def _unknown(fields: Mapping[str, Any]) -> Iterator[EffectAt]:
    """Find what a ledger says was started and not that it was done."""
    for step_id, state in _states(fields):
        effects = state.get("effects")
        for name, effect in effects.items() if isinstance(effects, Mapping) else ():
            if isinstance(effect, Mapping) and effect.get("status") == "started":
                yield EffectAt(step_id, name, str(effect.get("key", "")), Doubt.UNKNOWN)


def _forgotten(events: list[Event]) -> list[EffectAt]:
    """Find what was started after a point; what the other side refused has not happened."""
    found: dict[tuple[str, str], EffectAt] = {}
    for event in events:
        step_id, name = event.step_id or "", str(event.data.get("name", ""))
        if event.type == EFFECT_STARTED:
            key = str(event.data.get("key", ""))
            found[step_id, name] = EffectAt(step_id, name, key, Doubt.FORGOTTEN, event.seq)
        elif event.type == EFFECT_DONE and event.data.get("status") == "failed":
            found.pop((step_id, name), None)
    return list(found.values())
