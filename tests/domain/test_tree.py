"""Walking plain trees."""

from __future__ import annotations

import pytest

from holdfast.domain.tree import NOTHING, TAG, at_path, copy_tree, has_tags


def test_a_copy_shares_nothing_that_can_change():
    tree = {"a": [1, {"b": [2]}], "c": "text"}
    copy = copy_tree(tree)
    assert copy == tree
    copy["a"][1]["b"].append(3)
    assert tree == {"a": [1, {"b": [2]}], "c": "text"}


def test_a_very_deep_tree_is_copied():
    tree: list = []
    for _ in range(5000):
        tree = [tree]
    assert has_tags(copy_tree(tree)) is False


@pytest.mark.parametrize(
    "tree, found", [({}, False), ([1, {"x": {TAG: "uuid"}}], True), ({TAG: "x"}, True), (1, False)]
)
def test_tags_are_found_anywhere(tree, found):
    assert has_tags(tree if isinstance(tree, dict | list) else [tree]) is found


def test_a_place_is_found_by_its_path():
    tree = {"a": [{"b": 1}]}
    assert at_path(tree, ("a", 0, "b")) == 1
    assert at_path(tree, ()) is tree
    for path in (("x",), ("a", 1), ("a", 0, "b", "c"), ("a", "b")):
        assert at_path(tree, path) is NOTHING
    assert repr(NOTHING) == "NOTHING"
