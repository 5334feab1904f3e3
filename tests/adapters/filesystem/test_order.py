"""Lines of the order of leaves: all of one width, and any changed byte is noticed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.filesystem import order
from holdfast.adapters.filesystem.order import RECORD_BYTES, Place


@given(
    st.integers(0, 10**10 - 1), st.integers(1, 10**10 - 1), st.integers(0, 10**14 - 1), st.integers(1, 65535)
)
def test_a_line_comes_back_as_it_was(session_at: int, seq: int, offset: int, length: int) -> None:
    line = order.encode(session_at, seq, offset, length)
    assert len(line) == RECORD_BYTES and line.startswith(order.claim(session_at, seq))
    assert order.decode(line) == Place(session_at, seq, offset, length)


@given(st.integers(0, RECORD_BYTES * 8 - 1))
def test_no_flipped_bit_goes_unnoticed(bit: int) -> None:
    line = bytearray(order.encode(52, 7, 1234, 400))
    line[bit // 8] ^= 1 << bit % 8
    assert order.decode(bytes(line)) is None


def test_what_is_no_line_is_none() -> None:
    assert order.decode(b"") is None
    assert order.decode(b"-" * RECORD_BYTES) is None
