"""Records: built as the format says, and opened only if they are what was committed."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from holdfast.adapters.formats import Formats
from holdfast.application.records import (
    INLINE_BYTES_MAX,
    Opened,
    all_operations,
    build,
    change_body,
    full_body,
    open_record,
    operations,
    read_fields,
    sha256_of,
)
from holdfast.domain import delta, plainjson
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError

PLAIN = Formats("json", "none")


def fields_of(given: dict[str, Any]) -> bytes:
    return plainjson.dumps(given)[:-1]


def no_blob(sha256: str) -> bytes:
    raise AssertionError(f"nobody asked for {sha256}")


def test_the_checksum_is_that_of_the_format() -> None:
    data, checksum = build(fields_of({"seq": 1, "wf": "W"}), full_body("ab" * 32), "GENESIS")
    assert data.endswith(b'"}\n')
    line = json.loads(data)
    assert list(line) == ["seq", "wf", "full", "checksum"]
    assert line["full"] == "sha256:" + "ab" * 32
    hashed = b"GENESIS\n" + data.replace(checksum.encode(), b"")
    assert checksum == line["checksum"] == "sha256:" + hashlib.sha256(hashed).hexdigest()


def test_a_small_change_stands_in_the_line_as_readable_json() -> None:
    ops = [delta.set_value(["a"], "\u00e9")]
    data, checksum = build(fields_of({"seq": 2}), change_body(ops, PLAIN), "sha256:x")
    assert '"ops":[{"op":"set","path":["a"],"value":"\u00e9"}]' in data.decode()
    opened = open_record(data, "sha256:x", "W", 2)
    assert opened == Opened(data, b"", checksum)
    [fields] = read_fields([opened])
    assert operations(fields, opened.payload, PLAIN, no_blob) == ops


def test_other_encodings_follow_the_line_and_are_hashed_with_it() -> None:
    formats = Formats("msgpack", "zstd", threshold_bytes=100)
    ops = [delta.set_value(["a"], b"raw" * 100)]
    data, checksum = build(fields_of({"seq": 2}), change_body(ops, formats), "p")
    line, _, payload = data.partition(b"\n")
    about = json.loads(line)["payload"]
    assert about == {
        "encoding": "msgpack",
        "compression": "zstd",
        "len": len(payload) - 1,
        "raw": about["raw"],
    }
    hashed = b"p\n" + line.replace(checksum.encode(), b"") + b"\n" + payload
    assert checksum == "sha256:" + hashlib.sha256(hashed).hexdigest()
    opened = open_record(data, "p", "W", 2)
    assert operations(read_fields([opened])[0], opened.payload, formats, no_blob) == ops


def test_a_huge_change_goes_to_a_blob() -> None:
    ops = [delta.set_value(["a"], ["0123456789" * 10] * (INLINE_BYTES_MAX // 100))]
    body = change_body(ops, PLAIN)
    [(sha256, blob)] = body.blobs.items()
    assert hashlib.sha256(blob).hexdigest() == sha256
    data, _ = build(fields_of({"seq": 2}), body, "p")
    assert len(data) < 1000
    [fields] = read_fields([open_record(data, "p", "W", 2)])
    assert operations(fields, b"", PLAIN, body.blobs.__getitem__) == ops


def test_another_parent_is_another_record() -> None:
    data, _ = build(fields_of({"seq": 2}), change_body([], PLAIN), "p")
    with pytest.raises(ChecksumMismatchError) as caught:
        open_record(data, "q", "W", 2)
    assert caught.value.place == "W@2"


def test_every_changed_or_missing_byte_is_noticed() -> None:
    formats = Formats("msgpack", "none")
    data, _ = build(fields_of({"seq": 2}), change_body([delta.set_value(["a"], 1)], formats), "p")
    for at in range(len(data)):
        for other in (bytes([data[at] ^ 1]), bytes([data[at] ^ 0x80]), b"", b"\n"):
            damaged = data[:at] + other + data[at + 1 :]
            if damaged != data:
                with pytest.raises(ChecksumMismatchError):
                    open_record(damaged, "p", "W", 2)
    for length in range(len(data)):
        with pytest.raises(ChecksumMismatchError):
            open_record(data[:length], "p", "W", 2)


@pytest.mark.parametrize("size", [0, 1, 2046, 2047, 2048, 4094, 4095, 256 * 1024 - 1, 256 * 1024, 300_000])
def test_hashing_in_pieces_is_hashing(size: int) -> None:
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    assert sha256_of(data, b"more") == hashlib.sha256(data + b"more").hexdigest()


def test_changes_are_cut_out_of_lines_only_where_that_is_safe() -> None:
    one, two = [delta.set_value(["a"], {"ops": [1], "checksum": "x"})], [delta.set_value(["b"], ',"ops":')]
    parent, chain = "p", []
    for fields, body in (
        ({"seq": 1}, full_body("ab" * 32)),
        ({"seq": 2, "wf": ',"ops":'}, change_body(one, PLAIN)),
        ({"seq": 3, "stage_state": {"x": 1, "ops": [7]}}, change_body(two, PLAIN)),
        ({"seq": 4, "agent_state": {}}, change_body(one, Formats("cbor", "none"))),
        ({"seq": 5}, change_body([], PLAIN)),
    ):
        data, checksum = build(fields_of(fields), body, parent)
        chain.append(open_record(data, parent, "W", 1))
        parent = checksum
    assert all_operations(chain, PLAIN, no_blob) == one + two + one


@pytest.mark.parametrize("line", [b"[1]", b"7", b"null"])
def test_a_line_that_is_no_object_is_refused(line: bytes) -> None:
    with pytest.raises(CheckpointCorruptError):
        read_fields([Opened(line, b"", "")])


@pytest.mark.parametrize(
    "fields", [{}, {"ops": 1}, {"payload": {}}, {"payload": {"encoding": "json"}}, {"payload": 1}]
)
def test_a_record_without_a_proper_change_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(CheckpointCorruptError):
        operations(fields, b"", PLAIN, no_blob)
