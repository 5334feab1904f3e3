"""Replaying events onto a state: what fits is folded in, what does not is skipped and told.

The outcome is that of calling one reducer after the other. But a reducer copies what it changes, and ten
thousand copies of a growing list are too slow; so what the built-in reducers made for this replay, and
nobody else has seen, they change in place from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from holdfast.domain.event import Event
from holdfast.domain.reducers import (
    Fields,
    Reducer,
    add_decision,
    add_message,
    decision_of,
    merge_agent_state,
    merge_context,
    put_output,
    put_task,
)
from holdfast.domain.tree import copy_tree

ERASED_REASON = "its data was erased"

#: Ids of these types are equal just if a dict says so.
_SIMPLE_IDS = (str, int, UUID)


@dataclass(frozen=True, slots=True)
class SkippedEvent:
    """An event that could not be replayed, and why."""

    seq: int
    type: str
    reason: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """Fields of a state after the events, how many changed it, and which could not."""

    fields: dict[str, Any]
    count: int = 0
    skipped: tuple[SkippedEvent, ...] = ()


def replay(fields: Fields, events: Iterable[Event], reducers: Mapping[str, Reducer]) -> Replayed:
    """Fold events onto the fields of a state, in order; an event whose reducer fails is left out.

    Neither the fields given nor the lists and objects in them are changed, whatever reducers do. Those of
    the application have to answer new fields, as the built-in ones do, and leave alone what is in those
    that they were given: then one that fails has changed nothing.
    """
    fold, count, skipped = _Fold(fields), 0, list[SkippedEvent]()
    for event in events:
        reducer = reducers.get(event.type)
        if reducer is None:
            continue
        if event.erased:
            skipped.append(SkippedEvent(event.seq, event.type, ERASED_REASON))
            continue
        try:
            fold.add(reducer, event)
            count += 1
        except Exception as fault:
            skipped.append(SkippedEvent(event.seq, event.type, f"{type(fault).__name__}: {fault}"))
    return Replayed(fold.state, count, tuple(skipped))


def follow(
    fields: Fields, events: Iterable[Event], reducers: Mapping[str, Reducer]
) -> Iterator[tuple[Event, Fields]]:
    """Fold events as `replay` does, and answer the state after each; it lasts until the next is asked for."""
    fold = _Fold(fields)
    for event in events:
        reducer = reducers.get(event.type)
        if reducer is not None and not event.erased:
            with suppress(Exception):
                fold.add(reducer, event)
        yield event, fold.state


class _Fold:
    """A state that takes in one event after the other."""

    def __init__(self, fields: Fields) -> None:
        self.state: dict[str, Any] = dict(fields)
        #: Fields whose list or object was made here.
        self._owned: set[str] = set()
        #: Agents whose state was made here.
        self._agents: set[str] = set()
        #: Where the task of an id stands; None: a dict cannot tell. Of no meaning unless placed.
        self._places: dict[Any, int] | None = None
        self._is_placed = False
        self._is_lent = False

    def add(self, reducer: Reducer, event: Event) -> None:
        """Fold one event in; if that fails everything is as before."""
        quick = _QUICK.get(id(reducer))
        if quick is None:
            self._lend(reducer, event)
        elif not (self._take(quick) and quick.change(self, event)):
            self.state = reducer(self.state, event)
            self._owned.discard(quick.field)

    def _take(self, quick: _Quick) -> bool:
        """Copy the list or object of a field, unless it is ours already; False if it is neither."""
        field = quick.field
        if field in self._owned:
            return True
        value: Any = self.state.get(field)
        if type(value) not in quick.kinds:
            return False
        self.state[field] = value.copy()
        self._owned.add(field)
        if field == "agent_states":
            self._agents.clear()
        return True

    def _lend(self, reducer: Reducer, event: Event) -> None:
        """Let a reducer of the application answer; from then on it may hold on to anything."""
        if not self._is_lent:
            # Once: whatever such reducers do, the caller's state is not touched by it.
            self.state = copy_tree(self.state)
            self._is_lent = True
        self._owned.clear()
        is_placed, self._is_placed = self._is_placed, False
        tasks = self.state.get("tasks")
        count = len(tasks) if is_placed and tasks is not None else 0
        answer = reducer(dict(self.state), event)
        if not isinstance(answer, Mapping):
            raise TypeError(f"the reducer answered {type(answer).__name__}, not the fields of a state")
        self.state = dict(answer)
        self._is_placed = is_placed and self.state.get("tasks") is tasks and len(tasks or ()) == count

    def decision(self, event: Event) -> bool:
        self.state["decisions"].append(decision_of(event))
        return True

    def message(self, event: Event) -> bool:
        self.state["messages"].append(event.data["message"])
        return True

    def output(self, event: Event) -> bool:
        outputs = self.state["outputs"]
        if type(outputs) is list:
            outputs.append(event.data["value"])
        else:
            name, value = event.data["name"], event.data["value"]
            outputs[name] = value
        return True

    def context(self, event: Event) -> bool:
        return _update(self.state["context"], event.data["context"])

    def agent_state(self, event: Event) -> bool:
        if event.agent not in self._agents:
            return self._first_of_agent(event)
        return _update(self.state["agent_states"][event.agent], event.data["state"])

    def _first_of_agent(self, event: Event) -> bool:
        """Copy the state of one agent, and not the object that holds those of all."""
        if event.agent is None:
            return False
        states = self.state["agent_states"]
        states[event.agent] = {**states.get(event.agent, {}), **event.data["state"]}
        self._agents.add(event.agent)
        return True

    def task(self, event: Event) -> bool:
        task, tasks = event.data["task"], self.state["tasks"]
        if type(task) is not dict or type(task.get("id")) not in _SIMPLE_IDS:
            self._is_placed = False
            return False
        if not self._is_placed:
            self._places, self._is_placed = _places(tasks), True
        if self._places is None:
            return False
        place = self._places.setdefault(task["id"], len(tasks))
        if place == len(tasks):
            tasks.append(task)
        else:
            tasks[place] = {**tasks[place], **task}
        return True


def _update(known: dict[Any, Any], new: Any) -> bool:
    """Merge an object into one that is ours; anything else is for the reducer to judge."""
    if type(new) is not dict:
        return False
    known.update(new)
    return True


def _places(tasks: list[Any]) -> dict[Any, int] | None:
    """Say where the first task of each id stands; None if only comparing them one by one can tell."""
    places: dict[Any, int] = {}
    for place, task in enumerate(tasks):
        if type(task) is dict:
            task_id = task.get("id")
            if type(task_id) in _SIMPLE_IDS:
                places.setdefault(task_id, place)
            elif task_id is not None:
                return None
        elif isinstance(task, Mapping):
            return None
    return places


@dataclass(frozen=True, slots=True)
class _Quick:
    """How a built-in reducer works on a field that is ours."""

    field: str
    kinds: tuple[type, ...]
    #: False: the reducer has to do it itself.
    change: Callable[[_Fold, Event], bool]


_QUICK: Mapping[int, _Quick] = {
    id(add_message): _Quick("messages", (list,), _Fold.message),
    id(add_decision): _Quick("decisions", (list,), _Fold.decision),
    id(put_task): _Quick("tasks", (list,), _Fold.task),
    id(put_output): _Quick("outputs", (list, dict), _Fold.output),
    id(merge_context): _Quick("context", (dict,), _Fold.context),
    id(merge_agent_state): _Quick("agent_states", (dict,), _Fold.agent_state),
}
