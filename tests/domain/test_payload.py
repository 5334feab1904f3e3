import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError, InvalidStateError
from holdfast.domain.payload import SALT_BYTES, commitment, decode_payload, encode_payload

SALT = bytes(range(32))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.binary(max_size=4)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
OBJECTS = st.dictionaries(TEXT, PLAIN, max_size=3).filter(lambda value: "$hf" not in value)


def test_the_line_can_be_read_and_checked_with_other_tools():
    line = encode_payload({"decision": "approve_design", "confidence": 0.92}, SALT)
    assert line == (
        b'{"salt":"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",'
        b'"data":{"decision":"approve_design","confidence":0.92}}\n'
    )
    assert commitment(line) == "sha256:" + hashlib.sha256(line).hexdigest()
    assert json.loads(line)["data"]["confidence"] == 0.92


@given(OBJECTS, st.binary(min_size=SALT_BYTES, max_size=SALT_BYTES))
def test_a_payload_is_read_back(payload, salt):
    line = encode_payload(payload, salt)
    assert decode_payload(line, commitment(line)) == payload


def test_the_same_payload_has_another_commitment_each_time():
    first, second = (encode_payload({"decision": "yes"}, bytes([at] * 32)) for at in range(2))
    assert commitment(first) != commitment(second)


def test_every_bit_of_a_payload_matters():
    line = encode_payload({"decision": "yes"}, SALT)
    committed = commitment(line)
    for bit in range(len(line) * 8):
        changed = bytearray(line)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ChecksumMismatchError, match="not the one its audit entry commits to"):
            decode_payload(bytes(changed), committed)


@pytest.mark.parametrize("line", [b"", b"[]", b'{"data":1}', b'{"data":{},"data":{}}', b"\xff"])
def test_bytes_that_were_committed_to_and_are_no_payload_are_told(line):
    with pytest.raises(CheckpointCorruptError):
        decode_payload(line, commitment(line))


@pytest.mark.parametrize("size", [0, 16, 31, 33])
def test_a_salt_has_its_length(size):
    with pytest.raises(InvalidStateError, match="32 random bytes"):
        encode_payload({}, bytes(size))
