"""The record of a session says how it stands, and whether it is what was written."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError, StateTooLargeError
from holdfast.domain.ids import check_file_name
from holdfast.domain.session_context import SessionContext
from holdfast.domain.session_record import (
    RECORD_BYTES_MAX,
    Session,
    SessionStatus,
    decode_session,
    encode_session,
    file_of,
)
from tests.domain.test_session_context import contexts

WHEN = "2026-01-11T14:30:00.000000Z"


@given(contexts, st.sampled_from(SessionStatus), st.none() | st.just("s-0"), st.none() | st.just("s-2"))
def test_a_record_survives_a_round_trip(context, status, continues, continued_by):
    session = Session(context.session_id, status, context, WHEN, WHEN, continues, continued_by)
    written, data = encode_session(session, "salt")
    assert decode_session(data, context.session_id) == written == decode_session(data)


def test_a_record_is_one_line_of_json_that_holds_the_documents_block_and_its_own_sum():
    written, data = encode_session(Session("s-1", SessionStatus.OPEN, SessionContext("s-1")), "salt")
    assert data.endswith(b"\n") and data.count(b"\n") == 1
    assert json.loads(data)["session_context"]["session_id"] == "s-1"
    unsigned = data.replace(written.checksum.encode(), b"")
    assert written.checksum == "sha256:" + hashlib.sha256(unsigned).hexdigest()


def test_the_salt_keeps_the_sum_from_telling_what_was_said():
    session = Session("s-1", SessionStatus.OPEN, SessionContext("s-1", summary="yes"))
    assert encode_session(session, "a")[0].checksum != encode_session(session, "b")[0].checksum


@given(st.data())
def test_a_byte_that_changed_is_noticed(data):
    _, line = encode_session(
        Session("s-1", SessionStatus.OPEN, SessionContext("s-1", summary="go on")), "salt"
    )
    at = data.draw(st.integers(0, len(line) - 1))
    changed = line[:at] + bytes([line[at] ^ data.draw(st.integers(1, 255))]) + line[at + 1 :]
    with pytest.raises(CheckpointCorruptError):
        decode_session(changed, "s-1")


@pytest.mark.parametrize("data", [b"", b"torn", b'{"checksum":"sha256:0"}\n'])
def test_what_is_no_record_is_refused(data):
    with pytest.raises(ChecksumMismatchError):
        decode_session(data, "s-1")


@pytest.mark.parametrize("fields", [{"status": "open"}, {"session_id": "s-1", "status": "asleep"}])
def test_a_right_sum_makes_no_record_of_anything_else(fields):
    unsigned = json.dumps({**fields, "checksum": ""}, separators=(",", ":")).encode() + b"\n"
    digest = b"sha256:" + hashlib.sha256(unsigned).hexdigest().encode()
    with pytest.raises(CheckpointCorruptError, match="is none"):
        decode_session(unsigned[:-3] + digest + unsigned[-3:])


def test_a_record_in_the_place_of_another_is_refused():
    _, data = encode_session(Session("s-2", SessionStatus.OPEN, SessionContext("s-2")), "salt")
    with pytest.raises(CheckpointCorruptError, match="another session"):
        decode_session(data, "s-1")


def test_what_is_no_small_file_is_refused():
    context = SessionContext("s-1", payload={"text": "x" * RECORD_BYTES_MAX})
    with pytest.raises(StateTooLargeError, match="handed over"):
        encode_session(Session("s-1", SessionStatus.OPEN, context), "salt")


def test_plain_words_name_their_files_and_everything_else_is_hashed():
    assert file_of("session-1a2b3c4d") == "sessions/session-1a2b3c4d.json"
    hashed = [file_of(name) for name in ("S 1", "../up", "0123456789abcdef", "con/aux", "x" * 200, "\u00e9")]
    assert len({*hashed}) == len(hashed)
    assert all(len(name) == len("sessions/") + 16 + len(".json") for name in hashed)


@given(st.text(min_size=1, max_size=255))
def test_every_id_has_a_file(session_id):
    name = file_of(session_id.encode("utf-8", "replace").decode())
    assert check_file_name(name) == name
