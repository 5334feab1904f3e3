from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from holdfast.server.problems import Refusal
from holdfast.server.slices import Part, part_of


@given(st.lists(st.text(max_size=3), unique=True, max_size=12), st.integers(1, 5))
def test_parts_hold_every_row_once_and_in_order(rows, limit):
    found, cursor, total = part_of(rows, Part(limit=limit), str)
    assert total is UNSET
    while cursor is not None:
        some, cursor, total = part_of(rows, Part(cursor, limit, count=True), str)
        assert len(some) <= limit and total == len(rows)
        found += some
    assert found == rows


def test_a_cursor_that_names_no_row_is_refused():
    with pytest.raises(Refusal) as refused:
        part_of(["a", "b"], Part("gone"), str)
    assert (refused.value.status, refused.value.code) == (400, "invalid_cursor")
