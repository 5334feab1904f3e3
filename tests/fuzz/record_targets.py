"""What checkpoints, events, sessions and requests are kept as; and a whole store, file by file."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from uuid import UUID

import holdfast
from holdfast.adapters.formats import Formats
from holdfast.application.keyframes import read_keyframe
from holdfast.application.records import all_operations, open_record, read_fields, schema_of
from holdfast.domain import delta
from holdfast.domain.access import decode_token, encode_token, file_of_text
from holdfast.domain.errors import CheckpointError
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


@cache
def _folder() -> Path:
    folder = Path(real_store.folder())
    for path, data in real_store.files().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


@cache
def _paths() -> list[str]:
    return sorted(path for path in real_store.files() if not path.startswith("journal/"))


_MENDED = {
    "manifest.jsonl": mending.summed_lines,
    "lease.json": mending.summed_lines,
    "sessions.jsonl": mending.summed_lines,
}


def _whole_store(data: bytes) -> None:
    """Replace one file of a store by what is given, its sums made right, and read everything there is."""
    path = _paths()[data[0] % len(_paths()) if data else 0]
    mend = _MENDED.get(Path(path).name, bytes)
    place = _folder() / path
    place.write_bytes(mend(data[1:]))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _read_everything(str(_folder()))
    finally:
        place.write_bytes(real_store.files()[path])


def _read_everything(url: str) -> None:
    with holdfast.open(url, read_only=True) as service:
        for workflow_id in ("WF-1", "WF-2"):
            for ask in (
                service.list_checkpoints,
                service.load_latest,
                service.plan_recovery,
                service.lease_of,
            ):
                with suppress(CheckpointError):
                    ask(workflow_id)
            with suppress(CheckpointError):
                list(service.events(workflow_id))
        for look in (service.tokens.listing, service.sessions.listing, service.quarantine.entries):
            with suppress(CheckpointError):
                look()
        service.audit.verify_chain_integrity("s-1")
        list(service.audit.query_events(session_id="s-1"))


def _whole_seeds() -> Iterable[bytes]:
    return [bytes([at]) + real_store.files()[path] for at, path in enumerate(_paths())]


TARGETS = (
    Target("record", _record, _record_seeds),
    Target("keyframe", _keyframe, _keyframe_seeds),
    Target("event_line", _event, lambda: _lines("events/")),
    Target("session_record", _session, lambda: real_store.named("sessions/")),
    Target("request_file", _request, lambda: [encode_request(_REQUEST)]),
    Target("token_file", _token, lambda: real_store.named("access/")),
    Target("token_text", _token_text, lambda: [b"hf_a6ea9ef7_" + b"A" * 43]),
    Target("whole_store", _whole_store, _whole_seeds),
)
