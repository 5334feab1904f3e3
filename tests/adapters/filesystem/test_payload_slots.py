"""Slots of payloads: found one after the other, erased in place, and passed over where they are damaged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.overlay import Files, Overlay
from holdfast.adapters.filesystem.payload_slots import (
    SLOT_BYTES,
    commits_to_payload,
    empty_slot,
    encode_slot,
    erased_slot,
    is_erasure,
    slots,
)


@pytest.fixture
def files(tmp_path):
    return Files(Disk(str(tmp_path)), Overlay())


@pytest.fixture
def found(files, tmp_path):
    def found(data, offset=0):
        (tmp_path / "p").write_bytes(data)
        return list(slots(files, "p", offset))

    return found


@given(st.integers(1, 10**18 - 1), st.binary(max_size=2000))
def test_a_slot_ends_with_its_payload(seq, stored):
    slot = encode_slot(seq, stored)
    assert len(slot) % SLOT_BYTES == 0 and slot.endswith(b"\n" + stored)
    assert len(slot) - len(stored) < 3 * SLOT_BYTES
    assert not is_erasure(slot)


def test_slots_are_found_in_order_across_windows(found):
    stored = [b"x" * size for size in (1, 127, 5000, 1 << 20, 3)]
    data = b"".join(encode_slot(seq, payload) for seq, payload in enumerate(stored, start=1))
    listed = found(data)
    assert [data[s.start : s.start + s.stored_bytes] for s in listed] == stored
    assert [s.seq for s in found(data, listed[2].offset)] == [3, 4, 5]
    assert listed[-1].end == len(data)


def test_an_erased_slot_keeps_its_place_and_nothing_else(found):
    data = encode_slot(1, b"a" * 300) + encode_slot(2, b"b" * 300) + encode_slot(3, b"c")
    [_, second, _] = found(data)
    erased = erased_slot(second)
    assert is_erasure(erased) and len(erased) == second.length
    data = data[: second.offset] + erased + data[second.end :]
    assert [(s.seq, s.stored_bytes) for s in found(data)] == [(1, 300), (2, 0), (3, 1)]
    assert b"300" not in erased and b"b" * 3 not in data


def test_of_a_payload_that_was_erased_elsewhere_there_is_a_slot(found):
    [slot] = found(empty_slot(7))
    assert (slot.seq, slot.stored_bytes, slot.length) == (7, 0, SLOT_BYTES)


@pytest.mark.parametrize("at", [0, 8, 20, 128])
def test_behind_a_damaged_header_the_next_is_found(found, at):
    data = bytearray(encode_slot(1, b"a" * 300) + encode_slot(2, b"b"))
    data[at] ^= 1
    assert found(bytes(data))[-1].seq == 2


def test_a_cut_slot_is_none(found):
    assert found(encode_slot(1, b"a" * 300)[:-1]) == []


def test_only_the_commitment_itself_tells_of_a_payload():
    assert commits_to_payload(b'{"data":{"n":1,"payload":"sha256:00"}}\n')
    assert not commits_to_payload(b'{"data":{"n":"\\"payload\\":\\"sha256:00"}}\n')
