"""Operations between two states: they lead from the one to the other, and tell what they replace."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.packer import OrmsgpackPacker
from holdfast.application.insight.stored_changes import operations_at, with_old_values
from holdfast.domain import delta
from holdfast.domain.delta import Operation
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.tree import NOTHING

PACKER = OrmsgpackPacker(TypeRegistry())
LEAVES = st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab/~", max_size=4)
TREES = st.dictionaries(
    st.text("ab/~0", max_size=2),
    st.recursive(
        LEAVES,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab/~", max_size=2), inner),
    ),
    max_size=4,
)


def told(old: Any, new: Any, *pointer: str) -> list[tuple[Operation, Any]]:
    return list(with_old_values(operations_at(old, new, pointer, PACKER), old))


@given(TREES, TREES)
def test_what_is_told_turns_the_one_state_into_the_other(old: Any, new: Any) -> None:
    ops = [op for op, _ in told(old, new)]
    made = delta.apply(copy.deepcopy(ops), copy.deepcopy(old))
    assert json.dumps(made, sort_keys=True) == json.dumps(new, sort_keys=True)


def test_what_is_replaced_is_told_with_it() -> None:
    old, new = {"n": 1, "gone": 2, "list": [1]}, {"n": True, "list": [1, 2], "new": 3}
    assert sorted(told(old, new), key=lambda pair: str(pair[0]["path"])) == [
        (delta.delete(["gone"]), 2),
        (delta.splice(["list"], 1, 0, [2]), []),
        (delta.set_value(["n"], True), 1),
        (delta.set_value(["new"], 3), NOTHING),
    ]


def test_only_a_place_is_compared() -> None:
    old, new = {"a": {"b": [1]}, "gone": 1}, {"a": {"b": [2]}, "new": 1}
    assert told(old, new, "a", "b", "0") == [(delta.set_value(["a", "b", 0], 2), 1)]
    assert told(old, new, "gone") == [(delta.delete(["gone"]), 1)]
    assert told(old, new, "new") == [(delta.set_value(["new"], 1), NOTHING)]
    assert told(old, new, "nowhere", "at", "all") == []
