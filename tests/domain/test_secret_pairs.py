"""Secrets that stand beside their names, in states and in changes of states."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.adapters.redaction import engine
from holdfast.application import snapshot
from holdfast.domain import delta
from holdfast.domain.placeholders import is_placeholder
from holdfast.domain.plain import to_plain
from holdfast.domain.redaction import Redactor, Rules
from holdfast.domain.tree import copy_tree
from tests.canaries import TOKENS
from tests.values import registry

REDACTOR = Redactor(b"sixteen bytes or more", engine())
PACKER = OrmsgpackPacker(registry())
SECRET = "nothing but letters"
LONG = "a plain sentence of some length " * 8


def hidden(state: Any, redactor: Redactor = REDACTOR) -> Any:
    return redactor.tree(to_plain(state, registry()))[0]


def change(old: Any, new: Any) -> tuple[list[dict[str, Any]], Any]:
    """Take the operations between two states, hide them, and apply them to what is stored."""
    was, now = snapshot.take(old, PACKER), snapshot.take(new, PACKER)
    ops, _ = REDACTOR.operations(snapshot.changes(was, now, PACKER), lambda path: now.value_at(path, PACKER))
    return ops, delta.apply(copy_tree(ops), copy_tree(REDACTOR.tree(was.plain(PACKER))[0]))


@pytest.mark.parametrize(
    ("state", "path"),
    [
        ({"h": [["Authorization", SECRET]]}, ["h", 0, 1]),
        ({"h": [["x", "y"], ["password", SECRET]]}, ["h", 1, 1]),
        ({"h": [("X-Api-Key", SECRET)]}, ["h", 0, "v", 1]),
        ({"h": (("X-Api-Key", SECRET),)}, ["h", "v", 0, "v", 1]),
        ({"h": [["password", SECRET.encode()]]}, ["h", 0, 1]),
        ({"h": [["password", {"plain": [SECRET]}]]}, ["h", 0, 1, "plain", 0]),
        ({"env": [{"name": "DB_PASSWORD", "value": SECRET}]}, ["env", 0, "value"]),
        ({"env": {"key": "api_key", "value": SECRET}}, ["env", "value"]),
        ({"env": {"Value": SECRET, "x": 1, "Name": "ClientSecret"}}, ["env", "Value"]),
        ({"auth": ["ann", SECRET]}, ["auth", 1]),
        ({"auth": ("ann", SECRET)}, ["auth", "v", 1]),
        ({"basic_auth": ["ann", SECRET]}, ["basic_auth", 1]),
    ],
)
def test_a_value_beside_a_telling_name_is_hidden_and_nothing_else(state: Any, path: list[Any]) -> None:
    plain = to_plain(state, registry())
    tree, paths = REDACTOR.tree(plain)
    assert paths == [path]
    assert SECRET not in str(tree)
    assert REDACTOR.tree(tree) == (tree, [])
    _, stored = change({}, state)
    assert stored == tree


@pytest.mark.parametrize(
    "state",
    [
        {"required": ["password", "user"]},
        {"h": [["password", "user", "mail"]]},
        {"h": [["password"], []]},
        {"h": [["user", "ann"], ["Accept", "text/html"]]},
        {"scores": [["secret", 0.8], ["password", 12], ["token", None], ["key", True]]},
        {"metric": {"name": "secret", "value": 3}},
        {"metric": {"name": "max_tokens", "value": "many"}},
        {"field": {"name": "password", "type": "string", "label": "Your password"}},
        {"env": {"name": "DB_PASSWORD", "value": None}},
        {"auth": ["basic", "digest", "none"]},
        {"auth": "none"},
        {"logprobs": [["token", "Hello"]]},
        {"h": [["the password of my friend, which he told me last night in a very long letter", "x"]]},
    ],
)
def test_what_only_looks_like_a_pair_is_left_alone(state: Any) -> None:
    assert hidden(state) == state


def test_names_of_the_user_count_beside_values_too() -> None:
    rules = Rules(keys=frozenset({"home"}), allowed_keys=frozenset({"password", "auth"}))
    redactor = Redactor(b"k" * 16, engine(), rules)
    tree = hidden({"h": [["Home", "x"], ["password", "y"]], "auth": ["a", "b"]}, redactor)
    assert is_placeholder(tree["h"][0][1])
    assert tree["h"][1] == ["password", "y"]
    assert tree["auth"] == ["a", "b"]


@pytest.mark.sweep
def test_many_names_are_remembered_and_forgotten() -> None:
    pairs = [[f"name {number}", "x"] for number in range(5_000)]
    assert hidden({"h": [*pairs, ["password", SECRET]]})["h"][:5_000] == pairs


#: Old and new states; what is stored of the old one, changed, is the new one hidden.
CHANGES: list[tuple[Any, Any]] = [
    ([["password", "x"], ["a", LONG]], [["password", "y"], ["a", LONG]]),
    ([["user", LONG]], [["password", LONG]]),
    ([["password", LONG]], [["user", LONG]]),
    ([["pass", LONG]], [["password", LONG]]),
    ([["password", LONG]], [["password", LONG + "more"]]),
    ([["password", LONG]], [["password", LONG, "more"]]),
    ([["password", LONG, "more"]], [["password", LONG]]),
    ([["password", LONG]], [["user", LONG, "more"]]),
    ([["user", LONG, "more"]], [["password", LONG]]),
    ([["a", "password", LONG]], [["password", LONG]]),
    ([["password", LONG]], [[LONG, "x"]]),
    ([["password", {"a": LONG, "b": 1}]], [["password", {"a": LONG, "b": "two"}]]),
    ([["password", {"a": LONG, "b": 1}]], [["user", {"a": LONG}]]),
    ([("password", LONG)], [("user", LONG)]),
    ([("user", LONG)], [("password", LONG)]),
    ([("password", LONG)], [("password", LONG + SECRET)]),
    ([{"name": "A", "value": LONG}], [{"name": "PASSWORD", "value": LONG}]),
    ([{"name": "PASSWORD", "value": LONG}], [{"name": "A", "value": LONG}]),
    ([{"name": "PASSWORD", "value": LONG}], [{"name": "PASSWORD", "value": LONG + SECRET}]),
    ([{"name": "PASSWORD", "value": LONG}], [{"value": LONG}]),
    ([{"value": LONG}], [{"value": LONG, "name": "PASSWORD"}]),
    ([{"value": LONG, "name": "PASSWORD"}], [{"name": "A", "value": LONG}]),
    ([{"name": "PASSWORD", "value": [LONG, 1]}], [{"name": "PASSWORD", "value": [LONG, "two"]}]),
    ([{"name": "PASSWORD", "value": {"a": LONG, "b": "c"}}], [{"name": "A", "value": {"a": LONG}}]),
    ([{"name": "PASSWORD", "value": LONG}], [{"name": "PASSWORD", "value": 3}]),
    ({"auth": ["ann", LONG]}, {"auth": ["bob", LONG]}),
    ({"auth": ["ann", LONG]}, {"auth": ["ann", LONG, "x"]}),
    ({"auth": ["ann", LONG, "x"]}, {"auth": ["ann", LONG]}),
    ({"auth": ("ann", LONG)}, {"auth": ("ann", LONG + SECRET)}),
    ({1: "x", 2: ["password", LONG]}, {1: "x", 2: ["user", LONG]}),
    ({1: "x", "user": LONG}, {1: "x", "password": LONG}),
]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_a_change_beside_a_name_gives_what_the_whole_gives(old: Any, new: Any) -> None:
    for depth in ({"deep": {"k": LONG}}, {"a": 1}):
        _, stored = change({**depth, "h": old}, {**depth, "h": new})
        assert PACKER.pack_plain(stored) == PACKER.pack_plain(hidden({**depth, "h": new}))


def test_a_change_of_the_value_alone_never_carries_it() -> None:
    for old, new in (
        ([["password", "x"], [LONG, LONG]], [["password", SECRET], [LONG, LONG]]),
        ([["password"], [LONG, LONG]], [["password", SECRET], [LONG, LONG]]),
        ([{"name": "password", "value": "x", "y": LONG}], [{"name": "password", "value": SECRET, "y": LONG}]),
    ):
        ops, _ = change({"h": old}, {"h": new})
        assert SECRET not in str(ops)
        assert "REDACTED" in str(ops)


names = st.sampled_from(["password", "user", "pass", "Authorization", "token", LONG, TOKENS[0].secret, ""])
texts = st.sampled_from([LONG, SECRET, LONG + SECRET, "x", TOKENS[1].secret])
leaves = texts | st.integers(0, 3) | st.none() | st.binary(max_size=3)
inner_values = leaves | st.lists(names | leaves, max_size=3) | st.dictionaries(names, leaves, max_size=2)
members = st.sampled_from(["name", "key", "Name", "value", "Value", "password", "other"])
entries = (
    st.tuples(names, inner_values).map(list)
    | st.tuples(names, inner_values)
    | st.lists(names | leaves, max_size=4)
    | st.dictionaries(members, names | inner_values, max_size=4)
    | st.dictionaries(st.integers(0, 1) | names, names | inner_values, max_size=3)
)
fields = st.sampled_from(["auth", "h", "value", "name", "properties", "logprobs"])
states = st.dictionaries(fields, entries | st.lists(entries, max_size=4), max_size=4)


def mutated(draw: st.DrawFn, value: Any) -> Any:
    """Change a few places of a value, anywhere."""
    what = draw(st.integers(0, 9))
    if type(value) is str and what < 3:
        return value + draw(texts | st.just("word"))
    if type(value) is list and what == 0:
        at = draw(st.integers(0, len(value)))
        return [
            *value[:at],
            *draw(st.lists(names | leaves, max_size=2)),
            *value[at + draw(st.integers(0, 1)) :],
        ]
    if type(value) is dict and what == 0:
        kept = {key: item for key, item in value.items() if draw(st.booleans())}
        return {**kept, **draw(st.dictionaries(members, names | leaves, max_size=2))}
    if type(value) in (list, tuple):
        return type(value)(mutated(draw, item) for item in value)
    if type(value) is dict:
        return {key: mutated(draw, item) for key, item in value.items()}
    return draw(names | leaves) if what == 9 else value


@st.composite
def changed(draw: st.DrawFn) -> tuple[Any, Any]:
    """Draw a state, and one that shares much with it."""
    old = draw(states)
    return old, mutated(draw, old)


@pytest.mark.sweep
@settings(max_examples=300, deadline=None)
@given(changed())
@example(({"h": [["password", LONG]]}, {"h": [["user", LONG, "more"]]}))
@example(({"value": LONG}, {"value": LONG, "name": "password"}))
def test_hidden_changes_make_of_the_hidden_state_the_next_hidden_state(pair: tuple[Any, Any]) -> None:
    old, new = pair
    _, stored = change(old, new)
    assert PACKER.pack_plain(stored) == PACKER.pack_plain(hidden(new))


@pytest.mark.sweep
@settings(max_examples=150, deadline=None)
@given(states)
def test_what_was_hidden_beside_names_is_hidden_once_and_for_all(state: Any) -> None:
    tree = hidden(state)
    assert PACKER.pack_plain(REDACTOR.tree(tree)[0]) == PACKER.pack_plain(tree)
