"""A request is one line that carries its sum, and anything else is refused."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointCorruptError,
    ChecksumMismatchError,
    InvalidIdError,
    InvalidStateError,
    StateTooLargeError,
)
from holdfast.domain.ids import check_file_name
from holdfast.domain.request import (
    FOLDER,
    REQUEST_BYTES_MAX,
    Request,
    RequestKind,
    decode_request,
    encode_request,
    folder_of,
    id_of_file,
)

ID = "00000000-0000-4000-8000-000000000001"
WHEN = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)
PAUSE = Request(ID, "WF-1", RequestKind.PAUSE, "ann", WHEN, "lunch", {"until": "noon"})

names = st.text("abcXYZ-09 é/.", min_size=1, max_size=20).map(lambda text: f"w{text}w")
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4)
    ),
    max_leaves=8,
)
moments = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))])).filter(
    lambda moment: 1 < moment.year < 9999
)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    kind = draw(st.sampled_from(RequestKind))
    data = draw(st.dictionaries(st.text("abc", min_size=1), plain, max_size=4))
    if kind is RequestKind.APPROVAL:
        data["granted"] = draw(st.booleans())
    return Request(
        str(draw(st.uuids())),
        draw(names),
        kind,
        draw(st.none() | names),
        draw(moments),
        draw(st.none() | st.text()),
        data,
    )


def summed(fields: object) -> bytes:
    """Give any line the sum it needs: whoever writes to a store can do that."""
    unsigned = json.dumps(fields, separators=(",", ":")).encode() + b"\n"
    digest = b"sha256:" + hashlib.sha256(unsigned).hexdigest().encode()
    return unsigned[:-3] + digest + unsigned[-3:]


@given(requests())
def test_a_request_survives_a_round_trip(request_made: Request) -> None:
    line = encode_request(request_made)
    assert decode_request(line, request_made.file) == request_made
    assert line.endswith(b"\n") and line.count(b"\n") == 1


@given(requests())
def test_every_request_has_a_file_among_those_of_its_workflow(request_made: Request) -> None:
    assert check_file_name(request_made.file) == request_made.file
    assert request_made.file.startswith(folder_of(request_made.workflow_id))
    assert id_of_file(request_made.file) == request_made.id


def test_the_file_is_named_by_a_hash_of_the_workflow_and_the_id() -> None:
    digest = hashlib.sha256(b"WF-1").hexdigest()[:16]
    assert PAUSE.file == f"{FOLDER}{digest}/{ID}.json" == f"requests/{digest}/{ID}.json"


def test_the_line_is_json_and_its_sum_can_be_checked_by_hand() -> None:
    line = encode_request(PAUSE)
    fields = json.loads(line)
    assert [*fields] == [
        *("id", "workflow_id", "kind", "actor", "requested_at", "reason", "data"),
        "checksum",
    ]
    unsigned = line.replace(fields["checksum"].encode(), b"")
    assert fields["checksum"] == "sha256:" + hashlib.sha256(unsigned).hexdigest()


@given(st.data())
def test_a_byte_that_changed_is_noticed(data: st.DataObject) -> None:
    line = encode_request(PAUSE)
    at = data.draw(st.integers(0, len(line) - 1))
    changed = line[:at] + bytes([line[at] ^ data.draw(st.integers(1, 255))]) + line[at + 1 :]
    with pytest.raises(CheckpointCorruptError):
        decode_request(changed, PAUSE.file)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_no_request(data: bytes) -> None:
    with pytest.raises(CheckpointCorruptError):
        decode_request(data, PAUSE.file)


@pytest.mark.parametrize("data", [b"", b"torn", b'{"checksum":"sha256:0"}\n'])
def test_what_was_cut_or_overwritten_is_told_as_that(data: bytes) -> None:
    with pytest.raises(ChecksumMismatchError, match="not what was written"):
        decode_request(data, PAUSE.file)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "1"},
        {"id": 7},
        {"workflow_id": ""},
        {"workflow_id": None},
        {"kind": "explode"},
        {"kind": "approval"},
        {"kind": "approval", "data": {"granted": "yes"}},
        {"actor": 7},
        {"actor": " "},
        {"requested_at": "2026-01-11T14:30:00"},
        {"requested_at": 7},
        {"reason": ["because"]},
        {"data": []},
    ],
)
def test_a_right_sum_makes_no_request_of_anything_else(change: dict[str, object]) -> None:
    fields = json.loads(encode_request(PAUSE))
    with pytest.raises(CheckpointCorruptError, match="no request"):
        decode_request(summed({**fields, **change, "checksum": ""}), PAUSE.file)


@pytest.mark.parametrize("field", ["id", "workflow_id", "kind", "actor", "requested_at", "reason", "data"])
def test_no_field_may_be_left_out(field: str) -> None:
    fields = {**json.loads(encode_request(PAUSE)), "checksum": ""}
    del fields[field]
    with pytest.raises(CheckpointCorruptError, match="no request"):
        decode_request(summed(fields), PAUSE.file)


@pytest.mark.parametrize("fields", [["checksum", ""], [{"a": ""}]])
def test_what_is_no_object_is_no_request(fields: object) -> None:
    with pytest.raises(CheckpointCorruptError):
        decode_request(summed(fields), PAUSE.file)


def test_a_reader_may_meet_a_field_that_it_does_not_know() -> None:
    fields = json.loads(encode_request(PAUSE))
    line = summed({"novel": 1, **fields, "checksum": ""})
    assert decode_request(line, PAUSE.file) == PAUSE


def test_a_request_in_the_place_of_another_is_refused() -> None:
    other = Request(ID, "WF-2", RequestKind.PAUSE, "ann", WHEN)
    with pytest.raises(CheckpointCorruptError, match="another file"):
        decode_request(encode_request(other), PAUSE.file)


def test_what_is_no_small_file_is_refused() -> None:
    large = Request(ID, "WF-1", RequestKind.PAUSE, "ann", WHEN, "x" * REQUEST_BYTES_MAX)
    with pytest.raises(StateTooLargeError, match="the limit is"):
        encode_request(large)


@pytest.mark.parametrize("data", [{}, {"granted": "yes"}, {"granted": 1}])
def test_an_answer_says_whether_it_is_granted(data: dict[str, object]) -> None:
    with pytest.raises(InvalidStateError, match="granted"):
        Request(ID, "WF-1", RequestKind.APPROVAL, "ann", WHEN, None, data)


@pytest.mark.parametrize("wrong", [("1", "WF-1", "ann"), (ID, "", "ann"), (ID, "WF-1", "")])
def test_names_that_are_none_are_refused(wrong: tuple[str, str, str]) -> None:
    with pytest.raises(InvalidIdError):
        Request(wrong[0], wrong[1], RequestKind.CANCEL, wrong[2], WHEN)


def test_the_trail_has_a_type_for_each() -> None:
    told = {
        kind: Request(ID, "W", kind, None, WHEN, None, {"granted": True}).audit_type for kind in RequestKind
    }
    assert told.pop(RequestKind.APPROVAL) is AuditType.APPROVAL_GRANTED
    assert set(told.values()) == {AuditType.REQUEST_MADE}
    denied = Request(ID, "W", RequestKind.APPROVAL, None, WHEN, None, {"granted": False})
    assert denied.audit_type is AuditType.APPROVAL_DENIED
