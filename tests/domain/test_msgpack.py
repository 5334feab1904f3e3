"""The exact encoder agrees with the C encoder wherever both work, and reads nothing but what it writes."""

from __future__ import annotations

from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import CheckpointCorruptError, UnstorableValueError
from holdfast.domain.msgpack import (
    MAX_DEPTH,
    array_head,
    contains,
    head_bytes,
    map_head,
    pack,
    shape,
    text_of,
    unpack,
)
from tests.values import depth_of, fingerprint, nested, plain_trees


@given(plain_trees)
def test_both_encoders_give_the_same_bytes(plain: Any) -> None:
    data = pack(plain)
    assert data == ormsgpack.packb(plain)
    assert fingerprint(unpack(data)) == fingerprint(plain)


@pytest.mark.sweep
@pytest.mark.parametrize("size", [0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536])
def test_sizes_around_every_border_agree(size: int) -> None:
    for plain in ("x" * size, b"x" * size, [None] * size, {str(i): i for i in range(size)}):
        assert pack(plain) == ormsgpack.packb(plain)
        assert unpack(pack(plain)) == plain
    assert array_head(size) == pack([0] * size)[: len(array_head(size))]
    assert head_bytes(size) == len(array_head(size)) == len(map_head(size))
    assert map_head(size) == pack({str(i): 0 for i in range(size)})[: len(map_head(size))]


@pytest.mark.parametrize("power", range(65))
def test_integers_around_every_border_agree(power: int) -> None:
    for plain in (2**power, 2**power - 1, -(2**power), -(2**power) - 1):
        if -(2**63) <= plain < 2**64:
            assert pack(plain) == ormsgpack.packb(plain)
            assert unpack(pack(plain)) == plain


def test_the_shape_shows_in_the_first_byte() -> None:
    kinds: dict[str, list[Any]] = {
        "dict": [{}, {str(i): i for i in range(20)}],
        "list": [[], [0] * 20, [0] * 70_000],
        "str": ["", "x" * 40, "x" * 300, "x" * 70_000],
        "other": [None, 1, -1, 2.5, b"x", True, 2**40],
    }
    assert all(shape(pack(value)) == kind for kind, examples in kinds.items() for value in examples)
    assert all(text_of(pack(text)) == text.encode() for text in kinds["str"])


@given(st.lists(st.sampled_from([b"$", b"$hf", b"\xa3", b"\xa3$hf", b"x", b"h", b"$" * 120]), max_size=12))
def test_a_needle_is_found_by_its_rare_byte(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    assert contains(data, b"\xa3$hf", rare=1) == (b"\xa3$hf" in data)
    assert contains(data, b"$hf", rare=0) == (b"$hf" in data)


@pytest.mark.parametrize("end", [b"", b"hf", b"\xa3hf", b"\xa3$hf", b"\xa3$hf$"])
def test_a_needle_is_found_where_its_rare_byte_is_not_rare(end: bytes) -> None:
    data = b"$ " * 1_000 + end
    assert contains(data, b"\xa3$hf", rare=1) == (b"\xa3$hf" in data)


def test_depth_costs_no_recursion() -> None:
    assert depth_of(unpack(pack(nested(MAX_DEPTH)))) == MAX_DEPTH


def test_what_is_not_plain_is_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    for value in (object(), (1,), 2**64, -(2**63) - 1, cycle):
        with pytest.raises(UnstorableValueError):
            pack(value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x01\x01",
        b"\x92\x01",
        b"\xa2a",
        b"\xa1\xff",
        b"\xdd\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xd4\x01\x00",
        b"\x81\x01\x02",
        b"\x81\x90\x02",
        b"\x82\xa1a\x01\xa1a\x02",
        b"\x91" * 50_000 + b"\x90",
    ],
    ids=lambda data: data[:8].hex(),
)
def test_bytes_that_are_not_one_plain_tree_are_refused(data: bytes) -> None:
    with pytest.raises(CheckpointCorruptError):
        unpack(data)


@given(st.binary(max_size=40))
def test_random_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        unpack(data)
    except CheckpointCorruptError:
        return
