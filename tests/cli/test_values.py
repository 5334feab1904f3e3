from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.values import as_json_tree, pretty, same, short_json, summary

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
    assert same(json.loads(pretty(tree)), as_json_tree(tree))


def test_values_that_json_has_no_word_for_are_tagged():
    assert as_json_tree({"b": b"\x00", "n": float("nan"), "i": 2**70}) == {
        "b": {"$hf": "bytes", "v": "AA=="},
        "n": {"$hf": "float", "v": "nan"},
        "i": {"$hf": "int", "v": hex(2**70)},
    }


def test_trees_of_any_depth_are_shown():
    deep = nested(5_000)
    assert pretty(deep).count("[") == 5_001
    assert as_json_tree(deep) is deep


def test_the_same_value_of_another_type_is_not_the_same():
    assert same({"a": [1]}, {"a": [1]})
    assert not same(1, True) and not same(1, 1.0) and not same({"a": 1, "b": 2}, {"b": 2, "a": 1})


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
