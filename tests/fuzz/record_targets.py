"""What checkpoints, events, sessions, requests and tokens are kept as."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

from holdfast.adapters.formats import Formats
from holdfast.application.keyframes import read_keyframe
from holdfast.application.records import all_operations, open_record, read_fields, schema_of
from holdfast.domain import delta
from holdfast.domain.access import decode_token, encode_token, file_of_text
from holdfast.domain.event import decode_event, encode_event
from holdfast.domain.ids import GENESIS
from holdfast.domain.request import Request, RequestKind, decode_request, encode_request
from holdfast.domain.session_record import decode_session
from tests.fuzz import mending, real_store
from tests.fuzz.target import Target, same, text_of

_REQUEST = Request(
    str(UUID(int=1)), "WF-1", RequestKind.PAUSE, "ann", datetime(2026, 1, 1, tzinfo=UTC), "tired", {"a": 1}
)


def _record(data: bytes) -> None:
    opened = [open_record(mending.record(data), GENESIS, "WF-1", 1)]
    read_fields(opened)
    schema_of(opened[0])
    delta.apply(all_operations(opened, Formats(), bytes.fromhex), {})


def _record_seeds() -> Iterable[bytes]:
    lines = real_store.named("deltas.jsonl")[0].splitlines(keepends=True)
    payload = b'{"seq":2,"wf":"WF-1","payload":{"encoding":"json","compression":"none","len":2,"raw":2}'
    return [*lines, payload + b',"checksum":"' + bytes(71) + b'"}\n[]\n']


def _keyframe(data: bytes) -> None:
    read_keyframe(data, Formats(), "WF-1", 1)


def _keyframe_seeds() -> Iterable[bytes]:
    packed = real_store.packed_keyframe()
    return [*real_store.named("checkpoint_000001.json"), packed]


def _event(data: bytes) -> None:
    found = decode_event(mending.event(data), GENESIS)
    same(decode_event(encode_event(found, GENESIS).data, GENESIS).data, found.data)
    decode_event(data, None)


def _lines(ending: str) -> Iterable[bytes]:
    return [line for data in real_store.named(ending) for line in data.splitlines(keepends=True)]


def _session(data: bytes) -> None:
    decode_session(mending.signed_line(data))


def _request(data: bytes) -> None:
    found = decode_request(mending.signed_line(data), _REQUEST.file)
    same(decode_request(encode_request(found), found.file), found)


def _token(data: bytes) -> None:
    name = "access/token-" + text_of(data)[8:16] + ".json"
    found = decode_token(data, name)
    same(decode_token(encode_token(found), name), found)


def _token_text(data: bytes) -> None:
    file_of_text(text_of(data))


TARGETS = (
    Target("record", _record, _record_seeds),
    Target("keyframe", _keyframe, _keyframe_seeds),
    Target("event_line", _event, lambda: _lines("events/")),
    Target("session_record", _session, lambda: real_store.named("sessions/")),
    Target("request_file", _request, lambda: [encode_request(_REQUEST)]),
    Target("token_file", _token, lambda: real_store.named("access/")),
    Target("token_text", _token_text, lambda: [b"hf_a6ea9ef7_" + b"A" * 43]),
)
