"""Differences: a patch applies exactly, by an applier that knows nothing of how it was made."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight import differences
from holdfast.application.insight.differences import changes, edits, edits_at, is_same, patch
from holdfast.domain import plainjson
from tests.application.insight.test_state_nodes import PLAIN, TEXT


def as_json(plain: Any) -> Any:
    return json.loads(plainjson.dumps(plain))


def applied(document: Any, steps: list[dict[str, Any]]) -> Any:
    """Apply add, remove and replace as RFC 6902 says."""
    document = copy.deepcopy(document)
    for step in steps:
        if step["path"] == "":
            assert step["op"] != "remove"
            document = copy.deepcopy(step["value"])
            continue
        *above, last = [one.replace("~1", "/").replace("~0", "~") for one in step["path"].split("/")[1:]]
        owner = document
        for key in above:
            owner = owner[int(key)] if isinstance(owner, list) else owner[key]
        if isinstance(owner, list):
            place = int(last)
            if step["op"] == "add":
                assert 0 <= place <= len(owner)
                owner.insert(place, copy.deepcopy(step["value"]))
            elif step["op"] == "remove":
                del owner[place]
            else:
                owner[place] = copy.deepcopy(step["value"])
            continue
        assert step["op"] == "add" or last in owner
        if step["op"] == "remove":
            del owner[last]
        else:
            owner[last] = copy.deepcopy(step["value"])
    return document


def inside(draw: st.DrawFn, tree: Any) -> Any:
    """Choose an object or a list that is not empty, somewhere in a tree."""
    for _ in range(draw(st.integers(0, 3))):
        items = tree.values() if isinstance(tree, dict) else tree
        inner = [item for item in items if isinstance(item, dict | list) and item]
        tree = draw(st.sampled_from(inner)) if inner else tree
    return tree


def change_object(draw: st.DrawFn, owner: dict[str, Any]) -> None:
    key = draw(st.sampled_from(sorted(owner)) if owner else TEXT)
    deed = draw(st.sampled_from(["pop", "set", "add"]))
    if deed == "pop":
        owner.pop(key, None)
    else:
        owner[key if deed == "set" else f"{key}x"] = draw(PLAIN)


def change_list(draw: st.DrawFn, owner: list[Any]) -> None:
    place, other = (draw(st.integers(0, len(owner) - 1)) for _ in range(2))
    deed = draw(st.sampled_from(["pop", "insert", "append", "move", "set"]))
    if deed in ("pop", "move"):
        item = owner.pop(place)
        if deed == "move":
            owner.insert(other, item)
    elif deed == "set":
        owner[place] = draw(PLAIN)
    else:
        owner.insert(place if deed == "insert" else len(owner), draw(PLAIN))


@st.composite
def versions(draw: st.DrawFn) -> tuple[Any, Any]:
    """Draw a tree and one that was made from it by a few changes."""
    lists = st.fixed_dictionaries({"list": st.lists(PLAIN, max_size=8)})
    old = draw(st.dictionaries(TEXT, PLAIN, max_size=5) | lists)
    new = copy.deepcopy(old)
    for _ in range(draw(st.integers(0, 4))):
        owner = inside(draw, new)
        (change_object if isinstance(owner, dict) else change_list)(draw, owner)
    return old, new


@given(st.one_of(versions(), st.tuples(PLAIN, PLAIN)))
def test_a_patch_turns_the_old_tree_into_the_new_one(pair: tuple[Any, Any]) -> None:
    old, new = pair
    steps = json.loads(plainjson.dumps(patch(edits(old, new))))
    patched = applied(as_json(old), steps)
    assert json.dumps(patched, sort_keys=True) == json.dumps(as_json(new), sort_keys=True)


@given(PLAIN)
def test_what_is_the_same_has_no_differences(value: Any) -> None:
    assert edits(value, copy.deepcopy(value)) == []


@given(st.one_of(versions(), st.tuples(PLAIN, PLAIN)))
def test_every_edit_is_told_once_and_what_moved_stands_for_two(pair: tuple[Any, Any]) -> None:
    found = edits(*pair)
    told = changes(found)
    moved = sum(one.kind == "moved" for one in told)
    assert len(told) + moved == len(found)
    assert all(one.source is not None for one in told if one.kind == "moved")


def kinds(old: Any, new: Any, ignore: Any = ()) -> list[tuple[str, str]]:
    return [(one.kind, one.pointer) for one in changes(edits(old, new, ignore))]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"a": 1}, {"a": 2, "b": 3}, [("changed", "/a"), ("added", "/b")]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": 1}, {"a": True}, [("changed", "/a")]),
        ({"a": 0.0}, {"a": -0.0}, [("changed", "/a")]),
        ({"a": "x"}, {"a": "xy"}, [("grew", "/a")]),
        ({"a": ""}, {"a": "y"}, [("changed", "/a")]),
        ({"a": [1, 2, 3]}, {"a": [1, 9, 2, 3]}, [("added", "/a/1")]),
        ({"a": [1, 2, 3]}, {"a": [2, 3]}, [("removed", "/a/0")]),
        ({"a": [1, 2, 3]}, {"a": [3, 1, 2]}, [("moved", "/a/0")]),
        ({"a": [{"id": 1, "n": 1}]}, {"a": [{"id": 1, "n": 2}]}, [("changed", "/a/0/n")]),
        ({"a": [{"id": 1}]}, {"a": [{"id": 2}]}, [("removed", "/a/0"), ("added", "/a/0")]),
        ({"a": {"long text": 1}}, {"b": {"long text": 1}}, [("moved", "/b")]),
        ({"a": 1}, {"b": 1}, [("removed", "/a"), ("added", "/b")]),
        ({"a": {"$hf": "tuple", "v": [1]}}, {"a": {"$hf": "tuple", "v": [1, 2]}}, [("added", "/a/v/1")]),
        ({"a": {"$hf": "tuple", "v": [1]}}, {"a": {"$hf": "set", "v": [1]}}, [("changed", "/a")]),
        (
            {"a": [{"x": 1, "y": 2, "z": 3}, 5]},
            {"a": [{"x": 1, "y": 2, "z": 4}, 6, 7]},
            [("changed", "/a/0/z"), ("removed", "/a/1"), ("added", "/a/1"), ("added", "/a/2")],
        ),
    ],
)
def test_differences_are_told_as_people_see_them(old: Any, new: Any, told: list[tuple[str, str]]) -> None:
    assert kinds(old, new) == told


def test_places_can_be_ignored() -> None:
    old, new = {"a": {"n": 1}, "t": 1, "gone": 1}, {"a": {"n": 2}, "t": 2, "new": 1}
    assert kinds(old, new, [("a", "n"), ("t",), ("gone",)]) == [("added", "/new")]
    assert kinds(old, new, [("new",), ("a",), ("gone",)]) == [("changed", "/t")]


def test_one_place_is_compared_and_named_from_the_root() -> None:
    old, new = {"a": [{"n": 1}], "gone": 1}, {"a": [{"n": 2, "m": 3}], "new": 1}
    places = ("/a/0", "/gone", "/new", "/x/y")
    found = {text: patch(edits_at(old, new, text.split("/")[1:])) for text in places}
    assert found["/a/0"] == [
        {"op": "replace", "path": "/a/0/n", "value": 2},
        {"op": "add", "path": "/a/0/m", "value": 3},
    ]
    assert found["/gone"] == [{"op": "remove", "path": "/gone"}]
    assert found["/new"] == [{"op": "add", "path": "/new", "value": 1}]
    assert found["/x/y"] == []


def test_long_texts_are_compared_line_by_line() -> None:
    old, new = "one\ntwo\nthree", "one\n2\nthree"
    [change] = changes(edits({"t": old}, {"t": new}))
    assert change.text == "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    [change] = changes(edits({"t": "short"}, {"t": "other"}))
    assert change.text is None
    [change] = changes(edits({"t": "a\n" * 500}, {"t": "b\n" * 500}))
    assert change.text is not None and change.text.endswith("\n...")
    for many in ("a\n" * 5_000, "a" * 300_000):
        [change] = changes(edits({"t": many}, {"t": "b" + many}))
        assert change.text is None


def test_more_edits_than_anybody_reads_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "EDITS_MAX", 3)
    [edit] = edits({str(n): n for n in range(9)}, {str(n): -n - 1 for n in range(9)})
    assert (edit.op, edit.path) == ("replace", ())


def test_trees_may_be_deeper_than_python_goes() -> None:
    def deep(bottom: Any) -> Any:
        for _ in range(1_100):
            bottom = [bottom]
        return {"a": bottom}

    assert edits(deep(1), deep(1)) == []
    [edit] = edits(deep(1), deep(2))
    assert edit.op == "replace" and edit.path[:1] == ("a",)


def test_the_same_means_the_same_type() -> None:
    assert is_same(float("nan"), float("nan"))
    assert not is_same([1], [True])
    assert is_same(b"x", b"x") and not is_same(b"x", "x")
