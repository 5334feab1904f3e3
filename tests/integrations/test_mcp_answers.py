from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidStateError
from holdfast.integrations.mcp_answers import LIMIT_MAX, Answers, bounded, json_of, looked_up

TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=30) | st.binary(max_size=30),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.text(max_size=20), st.text(max_size=200), max_size=4)))
def test_rows_are_bounded_and_what_is_left_out_is_counted(rows: list[dict[str, Any]]) -> None:
    told = Answers(1_000).fitted("rows", rows, len(rows))
    assert sum(len(json.dumps(row, ensure_ascii=False).encode()) for row in told["rows"]) <= 1_000
    assert told["rows"] == rows[: len(told["rows"])]
    assert len(told["rows"]) + told["left_out"] == told["total"] == len(rows)


@given(TREES)
def test_a_value_is_told_whole_or_outlined(tree: Any) -> None:
    told = Answers(200).whole("state", tree, "/a")
    if "state" in told:
        assert told == {"state": json_of(tree)}
        assert len(json.dumps(told["state"], ensure_ascii=False).encode()) <= 200
    else:
        assert "pointer='/a/...'" in told["hint"] and told["too_large"]


def test_an_outline_names_fields_and_sizes() -> None:
    answers = Answers(100)
    assert answers.whole("state", {"a": "x" * 98, "b": 1}, "")["too_large"] == {
        "fields": {"a": 100, "b": 1},
        "total": 2,
    }
    assert answers.whole("state", ["x" * 100], "")["too_large"] == {"items": 1}
    assert answers.whole("state", "x" * 100, "")["too_large"] == {"bytes": 102}


def test_a_limit_is_never_more_than_agreed() -> None:
    assert [bounded(limit) for limit in (-1, 0, 5, 10**9)] == [1, 1, 5, LIMIT_MAX]


def test_a_pointer_leads_to_a_place_or_is_refused() -> None:
    tree = {"a": [{"b/c": 1, "~": 2}], "1": 3}
    assert looked_up(tree, "") is tree
    assert looked_up(tree, "/a/0/b~1c") == 1 and looked_up(tree, "/a/0/~0") == 2
    assert looked_up(tree, "/1") == 3
    for pointer in ("a", "/b", "/a/1", "/a/-1", "/a/0/b~1c/d", "/a/x"):
        with pytest.raises(InvalidStateError):
            looked_up(tree, pointer)


def test_what_is_nested_too_deep_to_be_shown_is_refused() -> None:
    tree: Any = []
    for _ in range(5_000):
        tree = [tree]
    with pytest.raises(InvalidStateError, match="too deep"):
        json_of(tree)
