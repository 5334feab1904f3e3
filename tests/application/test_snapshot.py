"""The law of snapshots: the operations between two of them turn the one into the other, byte for byte."""

from __future__ import annotations

import copy
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.codecs import codec
from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.application.snapshot import Snapshot, changes, from_plain, promise_broken, take
from holdfast.domain import delta
from holdfast.domain.errors import UnstorableValueError, UnsupportedTypeError
from holdfast.domain.plain import Plain
from tests.values import CONFUSABLE, Invoice, Pair, Point, fingerprint, nested, registry, values

TYPES = registry()
PACKER = OrmsgpackPacker(TYPES)

State = dict[str, Any]


def whole(snapshot: Snapshot) -> bytes:
    return PACKER.pack(Plain(snapshot.plain(PACKER)))


def check_law(base: Snapshot, new: Snapshot) -> list[delta.Operation]:
    """Apply the change to the base through JSON, as a store would, and compare every byte."""
    ops = changes(base, new, PACKER)
    stored = codec("json").decode(codec("json").encode(ops))
    assert PACKER.pack(Plain(delta.apply(stored, base.plain(PACKER)))) == whole(new)
    assert (ops == []) == (whole(base) == whole(new))
    assert new.size == len(whole(new))
    one_set = [delta.set_value([], new.plain(PACKER))]
    assert len(PACKER.pack(Plain(ops))) <= len(PACKER.pack(Plain(one_set))) + 64
    return ops


def step(base: Snapshot | None, state: State, append_only: frozenset[str] = frozenset()) -> Snapshot:
    new = take(state, PACKER, base, append_only)
    assert whole(new) == PACKER.pack(state)
    return new


def message(number: int) -> State:
    return {"id": f"m-{number}", "role": "user", "content": f"message {number} " + "word " * 20, "n": number}


def messages(first: int, last: int) -> list[State]:
    return [message(number) for number in range(first, last)]


@pytest.mark.sweep
@given(
    st.dictionaries(st.text(max_size=5), values, max_size=4),
    st.dictionaries(st.text(max_size=5), values, max_size=4),
)
def test_the_law_holds_between_any_two_states(first: State, second: State) -> None:
    base = step(None, first)
    check_law(base, step(base, second))
    check_law(base, step(None, second))
    check_law(from_plain(base.plain(PACKER), PACKER), step(base, second))


@pytest.mark.sweep
@given(values, values)
def test_the_law_holds_inside_large_parts(first: Any, second: Any) -> None:
    padding = {"text": "x" * 5_000, "list": list(range(3_000))}

    def around(value: Any) -> State:
        return {"a": {**padding, "v": value}, "b": [*messages(0, 100), value], "c": Point(value, padding)}

    base = step(None, around(first))
    check_law(base, step(base, around(second)))


@pytest.mark.parametrize("row", CONFUSABLE)
def test_values_that_look_alike_are_seen_as_changes(row: list[Any]) -> None:
    for old in row:
        for new in row:
            for wrap in _WRAPS:
                base = step(None, wrap(old))
                assert (check_law(base, step(base, wrap(new))) == []) == (old is new)


_WRAPS: list[Callable[[Any], State]] = [
    lambda value: {"value": value},
    lambda value: {"list": [*range(200), value, *messages(0, 20)]},
    lambda value: {"deep": {"pad": "x" * 5_000, "in": [{"a": (value,)}]}},
]


def test_nan_twice_is_no_change() -> None:
    base = step(None, {"a": float("nan"), "b": [float("nan")] * 500})
    assert check_law(base, step(base, {"a": float("nan"), "b": [float("nan")] * 500})) == []


EDITS: dict[str, Callable[[list[Any], random.Random], None]] = {
    "append": lambda items, _: items.append(message(len(items))),
    "insert at the head": lambda items, chance: items.insert(0, message(chance.randrange(10**6))),
    "insert": lambda items, chance: items.insert(chance.randrange(len(items) + 1), message(-len(items))),
    "slide": lambda items, chance: items.__setitem__(
        slice(None), [*items[1:], message(chance.randrange(10**6))]
    ),
    "shuffle": lambda items, chance: chance.shuffle(items),
    "sort": lambda items, _: items.sort(key=repr),
    "shrink": lambda items, chance: items.__delitem__(slice(chance.randrange(len(items) + 1), None)),
    "delete": lambda items, chance: items.pop(chance.randrange(len(items))) if items else None,
    "alternate": lambda items, _: items.__setitem__(
        slice(None), [1, 2] if len(items) > 2 else messages(0, 150)
    ),
    "repeat": lambda items, _: items.extend(["same"] * 70),
    "number": lambda items, chance: items.append(chance.choice([0, False, 0.0, -0.0])),
    "edit": lambda items, chance: _edit(items, chance),
    "edit all": lambda items, _: [item.update(n=1) for item in items if isinstance(item, dict)] and None,
    "nothing": lambda items, _: None,
}


def _edit(items: list[Any], chance: random.Random) -> None:
    for item in chance.sample(items, min(3, len(items))):
        if isinstance(item, dict):
            item[chance.choice(["content", "n", "new", "id"])] = chance.choice(
                ["x", 1, True, None, [1], {"a": 1}]
            )
            item["content"] = str(item.get("content")) + " grown"
            item.pop(chance.choice(["role", "none"]), None)


@pytest.mark.sweep
@given(
    st.lists(st.sampled_from(sorted(EDITS)), max_size=12),
    st.randoms(use_true_random=False),
    st.integers(0, 400),
)
def test_the_law_holds_along_any_run_of_edits(edits: list[str], chance: random.Random, count: int) -> None:
    state: State = {
        "messages": messages(0, count),
        "log": "",
        "context": {"inner": {"list": messages(0, 50)}},
    }
    base = step(None, state)
    for edit in edits:
        EDITS[edit](state["messages"], chance)
        EDITS[edit](state["context"]["inner"]["list"], chance)
        state["log"] += f"{edit} über "
        new = step(base, state)
        check_law(base, new)
        base = new


@pytest.mark.sweep
@given(st.lists(st.integers(0, 150), min_size=1, max_size=10), st.integers(0, 200), st.booleans())
def test_a_promise_to_append_only_gives_the_same_snapshots(growth: list[int], count: int, odd: bool) -> None:
    append_only = frozenset({"messages", "context.log", "missing.path", "text"})
    state: State = {"messages": messages(0, count), "context": {"log": [], "pad": "x" * 5_000}, "text": ""}
    base = step(None, state, append_only)
    for more in growth:
        state["messages"] += [(number,) if odd else message(number) for number in range(more)]
        state["context"]["log"] += ["line"] * (more * 10)
        state["text"] += "é" * more
        new = step(base, state, append_only)
        check_law(base, new)
        assert promise_broken(append_only, state, new, PACKER) == []
        base = new


def test_a_broken_promise_is_found_by_the_full_check() -> None:
    append_only = frozenset({"messages", "context.log", "other"})
    state: State = {
        "messages": messages(0, 200),
        "context": {"log": messages(0, 200), "pad": "x" * 9_000},
        "other": [1],
    }
    base = take(state, PACKER, None, append_only)
    state["messages"][5]["n"] = "changed"
    state["context"]["log"].append(1)
    new = take(state, PACKER, base, append_only)
    assert promise_broken(append_only, state, new, PACKER) == ["messages"]
    state["context"]["log"][0] = True
    assert promise_broken(append_only, state, new, PACKER) == ["context.log", "messages"]
    assert promise_broken(append_only, {"messages": None}, new, PACKER) == ["messages"]


def test_a_list_that_shrinks_against_its_promise_is_read_in_full() -> None:
    append_only = frozenset({"messages"})
    base = take({"messages": messages(0, 200)}, PACKER, None, append_only)
    step(base, {"messages": messages(100, 200)}, append_only)


def test_items_that_come_after_the_snapshot_break_no_promise() -> None:
    state: State = {"messages": messages(0, 200)}
    base = take(state, PACKER)
    state["messages"].append(1)
    assert promise_broken(frozenset({"messages"}), state, base, PACKER) == []


def ops_between(first: State, second: State) -> list[delta.Operation]:
    base = step(None, first)
    return check_law(base, step(base, second))


def test_a_sliding_window_of_a_large_list_is_two_splices() -> None:
    ops = ops_between({"m": messages(0, 1_000)}, {"m": messages(3, 1_001)})
    assert ops == [delta.splice(["m"], 0, 3, []), delta.splice(["m"], 997, 0, [message(1_000)])]


def test_an_insertion_at_the_head_is_one_splice() -> None:
    assert ops_between({"m": messages(1, 1_000)}, {"m": messages(0, 1_000)}) == [
        delta.splice(["m"], 0, 0, [message(0)])
    ]


def test_an_appended_message_is_one_splice() -> None:
    for count in (0, 1, 63, 64, 65, 500):
        ops = ops_between({"m": messages(0, count), "x": 1}, {"m": messages(0, count + 1), "x": 1})
        assert len(ops) == 1
        assert len(PACKER.pack(Plain(ops))) < 350


def test_edits_far_apart_touch_only_their_fields() -> None:
    new = messages(0, 1_000)
    new[10]["n"], new[900]["content"] = True, new[900]["content"] + "!"
    assert ops_between({"m": messages(0, 1_000)}, {"m": new}) == [
        delta.set_value(["m", 10, "n"], True),
        delta.append(["m", 900, "content"], "!"),
    ]


def test_a_last_message_that_grows_while_another_comes_is_an_append_and_a_splice() -> None:
    old, new = messages(0, 300), messages(0, 301)
    new[299]["content"] += " and more"
    assert ops_between({"m": old}, {"m": new}) == [
        delta.append(["m", 299, "content"], " and more"),
        delta.splice(["m"], 300, 0, [message(300)]),
    ]


def test_a_string_that_grows_is_an_append() -> None:
    assert ops_between({"a": "häuser " * 1_000}, {"a": "häuser " * 1_000 + "ß"}) == [delta.append(["a"], "ß")]
    assert ops_between({"a": "ab"}, {"a": "b" * 50}) == [delta.set_value(["a"], "b" * 50)]


def test_paths_go_into_registered_types() -> None:
    old, new = Invoice(1, messages(0, 90)), Invoice(1, messages(0, 90))
    new.lines[80]["n"] = 5
    assert ops_between({"bill": old}, {"bill": new}) == [delta.set_value(["bill", "v", "lines", 80, "n"], 5)]
    assert ops_between({"p": Pair(1, "x" * 99)}, {"p": Pair(2, "x" * 99)}) == [
        delta.set_value(["p", "v", "left"], 2)
    ]


def test_another_type_is_set_whole() -> None:
    assert [op["path"] for op in ops_between({"a": (1, 2)}, {"a": frozenset({1, 2})})] == [["a"]]
    assert [op["path"] for op in ops_between({"a": Pair(1, 2)}, {"a": Point(1, 2)})] == [["a"]]


def test_key_order_alone_is_a_change() -> None:
    big = {str(number): "x" * 100 for number in range(100)}
    moved = dict(big)
    moved["5"] = moved.pop("5")
    assert ops_between({"d": big}, {"d": moved}) == [
        delta.delete(["d", "5"]),
        delta.set_value(["d", "5"], "x" * 100),
    ]
    assert [op["path"] for op in ops_between({"d": big}, {"d": dict(reversed(big.items()))})] == [["d"]]
    ops_between({"a": 1, "b": 2}, {"b": 2, "a": 1})


def test_a_rewritten_state_is_one_set() -> None:
    ops = ops_between({"m": messages(0, 300)}, {"m": [f"other {number}" for number in range(300)]})
    assert [op["op"] for op in ops] == ["set"]


def test_without_a_base_everything_is_set() -> None:
    new = take({"a": (1,)}, PACKER)
    assert changes(None, new, PACKER) == [delta.set_value([], {"a": {"$hf": "tuple", "v": [1]}})]


def test_no_change_costs_no_new_nodes() -> None:
    state = {"m": messages(0, 200), "d": {"x": "y" * 9_000}, "n": 1}
    base = take(state, PACKER)
    assert take(copy.deepcopy(state), PACKER, base).root is base.root


@pytest.mark.sweep
@pytest.mark.parametrize("depth", [300, 2_000])
def test_deep_states_obey_the_law(depth: int) -> None:
    base = take({"a": nested(depth), "pad": ["x" * 5_000]}, PACKER)
    new = take({"a": nested(depth, "other"), "pad": ["x" * 5_000]}, PACKER, base)
    ops = changes(base, new, PACKER)
    assert PACKER.pack(Plain(delta.apply(ops, base.plain(PACKER)))) == whole(new)


def test_wide_levels_below_the_parts_are_leaves() -> None:
    value: Any = 1
    for level in range(40):
        value = {"pad": "x" * 5_000, "in": value, "level": level}
    base = take({"a": value}, PACKER)
    value["in"]["in"]["level"] = True
    check_law(base, take({"a": value}, PACKER, base))


def test_a_cycle_that_appears_below_a_part_is_refused_with_its_full_path() -> None:
    state: State = {"a": {"b": {"pad": "x" * 5_000}}}
    base = take(state, PACKER)
    state["a"]["b"]["up"] = state["a"]
    with pytest.raises(UnstorableValueError) as refused:
        take(state, PACKER, base)
    assert refused.value.place == "a.b.up"


def test_an_unsupported_value_is_named_with_its_full_path() -> None:
    state: State = {"m": messages(0, 200)}
    base = take(state, PACKER)
    state["m"][150]["content"] = object()
    with pytest.raises(UnsupportedTypeError) as refused:
        take(state, PACKER, base)
    assert refused.value.place == "m[150].content"


def test_a_snapshot_holds_nothing_of_the_callers() -> None:
    state: State = {"m": messages(0, 100), "d": {"x": [bytearray(b"abc")]}}
    base = take(state, PACKER)
    before = whole(base)
    state["m"][0]["n"] = "changed"
    state["d"]["x"][0][0] = 0
    assert whole(base) == before
    assert len(check_law(base, take(state, PACKER, base))) == 2


def test_a_state_whose_own_keys_look_like_tags_obeys_the_law() -> None:
    ops_between({"$hf": 1, "a": messages(0, 100)}, {"a": messages(0, 100)})
    ops_between({"a": messages(0, 100)}, {"$hf": "blob", "a": messages(0, 101)})
    ops_between({"a": {"$hf": 1, "pad": messages(0, 100)}}, {"a": {"$hf": 2, "pad": messages(0, 101)}})


def test_revived_states_equal_what_was_taken() -> None:
    state = {"at": Point((1, 2), {"a"}), "m": [Invoice(1, [b"x"])] * 100}
    assert fingerprint(TYPES.revive(take(state, PACKER).plain(PACKER))) == fingerprint(state)


@pytest.mark.sweep
@settings(max_examples=5)
@given(st.integers(1, 5))
def test_a_state_that_another_thread_changes_gives_one_snapshot(steps: int) -> None:
    """What was taken and what is recorded never part, whatever the thread does in between."""
    state: State = {"m": messages(0, 100), "d": {"pad": "x" * 5_000}, "t": [(1, [2])] * 70}
    done = threading.Event()

    def change() -> None:
        number = 0
        while not done.is_set():
            number += 1
            state["m"].append(message(number))
            state["d"][str(number)] = number
            state["t"].append((number, [number]))
            if number % 50 == 0:
                del state["m"][5:], state["t"][5:]
                state["d"].clear()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=change)
    base = take(state, PACKER)
    thread.start()
    try:
        stored = base.plain(PACKER)
        for _ in range(steps * 10):
            new = take(state, PACKER, base)
            stored = delta.apply(changes(base, new, PACKER), stored)
            assert PACKER.pack(Plain(stored)) == whole(new)
            base = new
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(interval)
