"""Cursors: what is written is read, and everything else is refused."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.application.insight.cursors import read_cursor, write_cursor
from holdfast.domain.errors import InvalidIdError


@given(st.text(), st.integers())
def test_a_cursor_is_read_as_it_was_written(text: str, number: int) -> None:
    written = write_cursor("rows", (text, number))
    assert written.isascii() and "=" not in written
    assert read_cursor("rows", written, (str, int)) == (text, number)


@given(st.text())
def test_any_other_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidIdError, match="no cursor"):
        read_cursor("rows", text, (str,))


@pytest.mark.parametrize("shape", [(int,), (str, str), ()])
def test_a_cursor_of_another_shape_is_refused(shape: tuple[type, ...]) -> None:
    with pytest.raises(InvalidIdError):
        read_cursor("rows", write_cursor("rows", ("a",)), shape)


def test_a_cursor_of_another_listing_is_refused() -> None:
    with pytest.raises(InvalidIdError):
        read_cursor("rows", write_cursor("others", ("a",)), (str,))
    deep = base64.urlsafe_b64encode(b"[" * 100_000).decode()
    with pytest.raises(InvalidIdError):
        read_cursor("rows", deep, (str,))
