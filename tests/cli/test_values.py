from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.differences import is_same
from holdfast.cli.values import pretty, short_json, summary
from holdfast.domain.plainjson import as_json_tree

TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def nested(depth: int) -> list[object]:
    deep: list[object] = []
    for _ in range(depth):
        deep = [deep]
    return deep


@given(TREES.filter(lambda tree: "$hf" not in repr(tree)))
def test_what_people_see_is_what_programs_get(tree):
    assert is_same(json.loads(pretty(tree)), as_json_tree(tree))


def test_trees_of_any_depth_are_shown():
    deep = nested(5_000)
    assert pretty(deep).count("[") == 5_001


def test_a_summary_tells_how_much_there_is():
    assert summary({}, 40) == "{}" and summary([], 40) == "[]"
    assert summary({"a": 1, "b": 2}, 40) == "{2} a, b"
    assert summary(dict.fromkeys("abcdefg"), 40) == "{7} a, b, c, d, e, ..."
    assert summary([1, {"x": "y"}], 40) == '[2] last: {"x":"y"}'
    assert summary({"$hf": "decimal", "v": "1.00"}, 40) == '{"$hf":"decimal","v":"1.00"}'
    assert summary(["x" * 100], 20) == '[1] last: "xxxxxx...'


def test_long_values_are_cut():
    assert short_json("x" * 100, 10) == '"xxxxxx...'
    assert short_json("short", 10) == '"short"'
