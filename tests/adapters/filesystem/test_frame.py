"""Frames: what is written is read back, and nothing else is taken for a frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.filesystem.frame import (
    ALIGNMENT,
    EMPTY_DIGEST,
    HEADER_BYTES,
    Kind,
    Operation,
    decode_frame,
    decode_operations,
    encode_frame,
    encode_operations,
    frame_bytes,
    payload_length,
)
from holdfast.domain.errors import CheckpointCorruptError

operations = st.builds(
    Operation,
    st.sampled_from(Kind),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60).map(
        lambda name: f"f{name.replace('..', '__')}"
    ),
    st.integers(0, 2**40),
    st.binary(max_size=300),
)


@given(st.lists(operations, max_size=8))
def test_operations_survive_the_payload(listed):
    assert decode_operations(encode_operations(listed)) == listed


@given(st.binary(max_size=6000), st.integers(0, 2**50), st.integers(0, 2**50), st.integers(0, 99))
def test_a_frame_survives_the_ring(payload, lsn, durable, token):
    data, digest = encode_frame(lsn, durable, token, b"p" * 32, payload)
    assert len(data) == frame_bytes(len(payload)) and len(data) % ALIGNMENT == 0
    assert payload_length(data[:HEADER_BYTES], lsn, len(data)) == len(payload)
    frame = decode_frame(data[:HEADER_BYTES], data[HEADER_BYTES : HEADER_BYTES + len(payload)])
    assert frame is not None
    assert (frame.lsn, frame.durable, frame.token, frame.previous) == (lsn, durable, token, b"p" * 32)
    assert frame.digest == digest and frame.payload == payload and frame.end == lsn + len(data)


@given(st.binary(min_size=1, max_size=200), st.data())
def test_any_flipped_bit_is_seen(payload, data):
    whole, _ = encode_frame(8, 0, 1, EMPTY_DIGEST, payload)
    used = HEADER_BYTES + len(payload)
    bit = data.draw(st.integers(0, used * 8 - 1))
    broken = bytearray(whole)
    broken[bit // 8] ^= 1 << bit % 8
    header, body = bytes(broken[:HEADER_BYTES]), bytes(broken[HEADER_BYTES:used])
    length = payload_length(header, 8, len(whole))
    assert length != len(payload) or decode_frame(header, body) is None


@pytest.mark.parametrize("header", [b"", b"HFJ1" + bytes(20), bytes(HEADER_BYTES)])
def test_what_is_no_header_announces_nothing(header):
    assert payload_length(header, 0, 4096) is None


def test_a_header_of_another_lap_announces_nothing():
    data, _ = encode_frame(4096, 0, 1, EMPTY_DIGEST, b"old lap")
    assert payload_length(data[:HEADER_BYTES], 8192, 4096) is None


def test_a_payload_larger_than_the_ring_is_not_believed():
    data, _ = encode_frame(0, 0, 1, EMPTY_DIGEST, bytes(5000))
    assert payload_length(data[:HEADER_BYTES], 0, 4096) is None


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "", "a\0b"])
def test_a_frame_that_would_write_outside_of_the_store_is_refused(path):
    payload = encode_operations([Operation(Kind.REPLACE, path, 0, b"{}")])
    with pytest.raises(CheckpointCorruptError, match="leads to nothing in the store"):
        decode_operations(payload)


@pytest.mark.parametrize("cut", [1, 14, 15, 16, 18])
def test_operations_that_are_cut_are_refused_though_their_digest_was_right(cut):
    payload = encode_operations([Operation(Kind.WRITE, "ab", 7, b"cd")])
    with pytest.raises(CheckpointCorruptError, match="journal"):
        decode_operations(payload[:cut])
