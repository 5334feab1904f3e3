"""Bytes have one spelling as text."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.base64_text import from_base64, to_base64
from holdfast.domain.errors import CheckpointCorruptError


@given(st.binary(min_size=1, max_size=20))
def test_base64_has_one_spelling(data):
    text = to_base64(data)
    assert from_base64(text, "it") == data
    for other in (text + "=", text[:-1], f" {text}", f"{text}\n", text.rstrip("=") + "A="):
        with suppress(CheckpointCorruptError):
            assert to_base64(from_base64(other, "it")) == other
