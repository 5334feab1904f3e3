"""Replaying is calling one reducer after the other, just faster, and it never touches what it is given."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.event import Event
from holdfast.domain.reducers import AGENT_STATE_EVENT, REDUCERS, TASK_EVENT, Fields, Reducer, add_message
from holdfast.domain.replay import ERASED_REASON, Replayed, SkippedEvent, follow, replay

WHEN = datetime(2026, 1, 11, 12, tzinfo=UTC)


def event(seq: int, type: str, data: Any, agent: str | None = None) -> Event:
    return Event(seq, WHEN + timedelta(seconds=seq), type, "W", agent=agent, data=data)


def one_by_one(fields: Fields, events: Iterable[Event], reducers: Mapping[str, Reducer]) -> Replayed:
    """The plain way: each reducer makes new fields out of the old ones."""
    state, count, skipped = dict(fields), 0, list[SkippedEvent]()
    for happened in events:
        if happened.type in reducers:
            try:
                state = reducers[happened.type](state, happened)
                count += 1
            except Exception as fault:
                reason = f"{type(fault).__name__}: {fault}"
                skipped.append(SkippedEvent(happened.seq, happened.type, reason))
    return Replayed(state, count, tuple(skipped))


def count_words(fields: Fields, happened: Event) -> dict[str, Any]:
    """A reducer of an application: keeps what it was given inside of what it answers."""
    if happened.data.get("bad"):
        raise RuntimeError("no")
    seen = {
        "messages": fields.get("messages"),
        "context": fields.get("context"),
        "tasks": fields.get("tasks"),
    }
    return {**fields, "seen": [*fields.get("seen", []), seen]}


def drop_messages(fields: Fields, happened: Event) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != happened.data.get("field", "messages")}


OURS: dict[str, Reducer] = {**REDUCERS, "WORDS": count_words, "DROPPED": drop_messages, "CHAT": add_message}

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False), st.sampled_from(["", "a", "b"])
)
IDS = st.one_of(
    SCALARS, st.sampled_from([UUID(int=1), UUID(int=2), (1,), ("a",)]), st.lists(SCALARS, max_size=1)
)
KEYS = st.sampled_from(["a", "b", "id", "status", "$hf"])
OBJECTS = st.dictionaries(KEYS, SCALARS, max_size=3)
TASKS = st.one_of(
    st.fixed_dictionaries({"id": IDS}, optional={"status": SCALARS}),
    OBJECTS,
    OBJECTS.map(MappingProxyType),
    SCALARS,
)
LISTS = st.one_of(st.lists(SCALARS, max_size=3), st.tuples(SCALARS), SCALARS, OBJECTS)
STATES = st.fixed_dictionaries(
    {"workflow_id": st.just("W")},
    optional={
        "messages": LISTS,
        "decisions": LISTS,
        "tasks": st.one_of(st.lists(TASKS, max_size=4), st.lists(TASKS, max_size=2).map(tuple), SCALARS),
        "outputs": st.one_of(LISTS, OBJECTS.map(MappingProxyType)),
        "context": st.one_of(OBJECTS, OBJECTS.map(MappingProxyType), SCALARS, st.lists(SCALARS, max_size=2)),
        "agent_states": st.one_of(
            st.dictionaries(st.sampled_from(["x", "y"]), st.one_of(OBJECTS, SCALARS), max_size=2), SCALARS
        ),
        "extra_field": SCALARS,
    },
)
PAIRS = st.lists(st.tuples(KEYS, SCALARS), max_size=2)
DATA = st.fixed_dictionaries(
    {},
    optional={
        "message": SCALARS,
        "task": TASKS,
        "value": SCALARS,
        "name": IDS,
        "context": st.one_of(OBJECTS, OBJECTS.map(MappingProxyType), PAIRS, SCALARS),
        "state": st.one_of(OBJECTS, OBJECTS.map(MappingProxyType), PAIRS, SCALARS),
        "bad": st.booleans(),
        "field": st.sampled_from(["messages", "tasks", "context", "agent_states", "outputs"]),
    },
)
TYPES = st.sampled_from([*REDUCERS, "WORDS", "DROPPED", "CHAT", "CHECKPOINT_CREATED"])
EVENTS = st.lists(st.tuples(TYPES, DATA, st.sampled_from(["x", "y", None])), max_size=12).map(
    lambda told: [event(seq, *happened) for seq, happened in enumerate(told, start=1)]
)


def plain(value: Any) -> str:
    """Spell a value out, types and order of keys included."""
    return repr(value)


@given(STATES, EVENTS)
def test_the_outcome_is_that_of_one_reducer_after_the_other(
    state: dict[str, Any], events: list[Event]
) -> None:
    expected = one_by_one(state, events, OURS)
    before = plain(state), plain(events)
    found = replay(state, events, OURS)
    assert plain(found.fields) == plain(expected.fields)
    assert (found.count, found.skipped) == (expected.count, expected.skipped)
    assert (plain(state), plain(events)) == before


@pytest.mark.sweep
@given(STATES, EVENTS, EVENTS)
def test_what_was_answered_once_is_never_changed_by_replaying_more(
    state: dict[str, Any], events: list[Event], more: list[Event]
) -> None:
    first = replay(state, events, OURS)
    kept = plain(first.fields)
    replay(first.fields, more, OURS)
    assert plain(first.fields) == kept


@pytest.mark.sweep
@given(STATES, EVENTS)
def test_replaying_in_two_parts_is_replaying_at_once(state: dict[str, Any], events: list[Event]) -> None:
    at_once = replay(state, events, OURS)
    middle = len(events) // 2
    half = replay(state, events[:middle], OURS)
    rest = replay(half.fields, events[middle:], OURS)
    assert plain(rest.fields) == plain(at_once.fields)
    assert half.skipped + rest.skipped == at_once.skipped


def test_a_reducer_that_fails_leaves_the_state_as_it_was_before_the_event() -> None:
    events = [
        event(1, "MESSAGE_ADDED", {"message": 1}),
        event(2, "MESSAGE_ADDED", {}),
        event(3, "WORDS", {"bad": True}),
        event(4, "MESSAGE_ADDED", {"message": 4}),
    ]
    found = replay({}, events, OURS)
    assert found.fields == {"messages": [1, 4]}
    assert found.count == 2
    assert found.skipped == (
        SkippedEvent(2, "MESSAGE_ADDED", "KeyError: 'message'"),
        SkippedEvent(3, "WORDS", "RuntimeError: no"),
    )


def test_a_reducer_that_answers_no_fields_is_skipped() -> None:
    reducers: dict[str, Any] = {"A": lambda fields, happened: None}
    found = replay({"messages": [1]}, [event(1, "A", {})], reducers)
    assert found.fields == {"messages": [1]}
    (skipped,) = found.skipped
    assert skipped.reason == "TypeError: the reducer answered NoneType, not the fields of a state"


def test_a_reducer_that_works_in_place_reaches_nothing_of_the_caller() -> None:
    def careless(fields: Any, happened: Event) -> dict[str, Any]:
        fields["context"]["n"] = happened.data["n"]
        fields["messages"].append(happened.data["n"])
        fields["new"] = True
        return dict(fields)

    state = {"context": {"n": 0, "deep": {"x": [1]}}, "messages": [0]}
    kept = copy.deepcopy(state)
    events = [event(1, "CARELESS", {"n": 1}), event(2, "MESSAGE_ADDED", {"message": 2})]
    found = replay(state, events, {**REDUCERS, "CARELESS": careless})
    assert found.fields == {"context": {"n": 1, "deep": {"x": [1]}}, "messages": [0, 1, 2], "new": True}
    assert state == kept


def test_an_event_whose_data_was_erased_is_told_and_left_out() -> None:
    gone = replace(event(1, "DECISION_RECORDED", {}, "lead"), erased=True)
    found = replay({}, [gone], REDUCERS)
    assert found.fields == {} and found.count == 0
    assert found.skipped == (SkippedEvent(1, "DECISION_RECORDED", ERASED_REASON),)


def test_an_erased_event_that_nobody_would_replay_is_not_told() -> None:
    gone = replace(event(1, "TASK_ASSIGNED", {}), erased=True)
    assert replay({}, [gone], REDUCERS).skipped == ()


def test_what_holdfast_itself_records_is_not_counted() -> None:
    kinds = ["CHECKPOINT_CREATED", "CHECKPOINT_STATUS", "CHECKPOINTS_PRUNED"]
    found = replay({"a": 1}, [event(n, kind, {}) for n, kind in enumerate(kinds)], REDUCERS)
    assert found == Replayed({"a": 1}, 0, ())


@pytest.mark.parametrize(
    "ids", [list(range(50)), [f"T-{n}" for n in range(50)], [UUID(int=n) for n in range(50)]]
)
def test_many_updates_of_many_tasks_end_up_where_they_belong(ids: list[Any]) -> None:
    state = {"tasks": [{"id": task_id, "n": 0} for task_id in ids[:40]]}
    events = [
        event(seq, "TASK_UPDATED", {"task": {"id": ids[seq * 7 % 50], "n": seq}}) for seq in range(1, 500)
    ]
    assert replay(state, events, REDUCERS) == one_by_one(state, events, REDUCERS)


@pytest.mark.parametrize("count", range(8))
def test_following_events_gives_the_state_after_each(count: int) -> None:
    events = [
        event(1, "MESSAGE_ADDED", {"message": "one"}),
        event(2, "NOBODY_KNOWS", {}),
        event(3, "COUNTED", {}),
        event(4, "MESSAGE_ADDED", {}),
        event(5, "CONTEXT_UPDATED", {"context": {"a": 1}}),
        event(6, "COUNTED", {"bad": True}),
        replace(event(7, "MESSAGE_ADDED", {"message": "gone"}), erased=True),
    ][:count]
    reducers = {**REDUCERS, "COUNTED": count_words}
    fields = {"messages": ["none"], "context": {}}
    followed = [(one.seq, copy.deepcopy(state)) for one, state in follow(fields, events, reducers)]
    assert followed == [(one.seq, replay(fields, events[: one.seq], reducers).fields) for one in events]


def both_ways(fields: Fields, events: list[Event]) -> Replayed:
    """Replay, after comparing that with the plain way."""
    found = replay(fields, events, REDUCERS)
    assert found == one_by_one(fields, events, REDUCERS)
    return found


def test_a_task_finds_the_one_whose_id_is_equal_though_of_another_type() -> None:
    found = both_ways({"tasks": [{"id": 1.0, "n": 1}]}, [event(1, TASK_EVENT, {"task": {"id": 1, "n": 2}})])
    assert found.fields["tasks"] == [{"id": 1, "n": 2}]


def test_tasks_without_an_id_are_in_nobodys_way() -> None:
    events = [
        event(1, TASK_EVENT, {"task": {"id": "b"}}),
        event(2, TASK_EVENT, {"task": {"id": "b", "n": 1}}),
    ]
    found = both_ways({"tasks": [{"n": 0}, {"id": None}]}, events)
    assert found.fields["tasks"][2:] == [{"id": "b", "n": 1}]


def test_the_state_of_an_agent_grows_and_the_one_before_stays_as_it_was() -> None:
    before = {"agent_states": {"a": {"x": 1}}}
    events = [
        event(seq, AGENT_STATE_EVENT, {"state": {"y": seq}}, agent)
        for seq, agent in enumerate(["a", "b", "a"])
    ]
    found = both_ways(before, events)
    assert found.fields["agent_states"] == {"a": {"x": 1, "y": 2}, "b": {"y": 1}}
    assert before == {"agent_states": {"a": {"x": 1}}}


def test_the_state_of_nobody_is_left_to_the_reducer() -> None:
    both_ways({"agent_states": {}}, [event(1, AGENT_STATE_EVENT, {"state": {"y": 1}})])
