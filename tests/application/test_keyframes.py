"""Keyframe files: readable where they can be, the same state in every form."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import Any

import pytest

from holdfast.adapters.formats import Formats
from holdfast.adapters.redaction import engine
from holdfast.application.keyframes import Caption, build_keyframe, lift_stored, read_keyframe
from holdfast.domain.errors import CheckpointCorruptError, UnsupportedVersionError
from holdfast.domain.plain import TypeRegistry, to_plain
from holdfast.domain.redaction import Redactor
from holdfast.domain.tree import copy_tree

PLAIN = Formats("json", "none")
CAPTION = Caption(
    "WF-1",
    42,
    "2026-01-11T14:30:00.000000Z",
    checksum="sha256:" + "a" * 64,
    agent_id="orchestrator",
    agent_version="2.1.0",
    session_id="s-1",
    parent_sequence=41,
    parent_checksum="sha256:" + "b" * 64,
    events_since_prev=15,
    size_bytes=2048,
)
TREE: dict[str, Any] = {
    "workflow_id": "WF-1",
    "messages": [{"role": "user"}, {"role": "\u00e9"}],
    "none": [],
    "n": 1,
}


def test_a_person_finds_each_field_and_item_on_a_line_of_its_own() -> None:
    keyframe = build_keyframe(CAPTION, copy_tree(TREE), (), PLAIN)
    lines = keyframe.data.decode().splitlines()
    assert lines[0] == "{"
    assert lines[1] == '"$schema": "checkpoint-schema-v1.0.0",'
    assert lines[3:11] == [
        '"state": {',
        '"workflow_id": "WF-1",',
        '"messages": [',
        '{"role":"user"},',
        '{"role":"\u00e9"}',
        "],",
        '"none": [],',
        '"n": 1',
    ]
    whole = json.loads(keyframe.data)
    assert whole["state"] == TREE
    assert whole["header"] == {
        "version": "1.0.0",
        "checkpoint_id": {
            "workflow_id": "WF-1",
            "sequence": 42,
            "timestamp": "2026-01-11T14:30:00.000000Z",
            "checksum": "sha256:" + "a" * 64,
        },
        "created_by": {"agent_id": "orchestrator", "agent_version": "2.1.0", "session_id": "s-1"},
        "compression": "none",
        "encoding": "utf-8",
    }
    assert whole["footer"] == {
        "prev_checkpoint": {"sequence": 41, "checksum": "sha256:" + "b" * 64},
        "events_since_prev": 15,
        "size_bytes": 2048,
    }
    assert keyframe.entry.suffix == "json"
    assert keyframe.entry.sha256 == hashlib.sha256(keyframe.data).hexdigest()
    assert keyframe.entry.length == len(keyframe.data)


@pytest.mark.parametrize(
    ("formats", "suffix"),
    [
        (PLAIN, "json"),
        (Formats("json", "zstd", 10), "json.zst"),
        (Formats("json", "gzip", 10), "json.gz"),
        (Formats("msgpack", "none"), "msgpack"),
        (Formats("msgpack", "zstd", 10), "msgpack.zst"),
        (Formats("cbor", "none"), "cbor"),
    ],
)
def test_every_form_is_read_back(formats: Formats, suffix: str) -> None:
    tree = {**TREE, "raw": b"\x00\n\xff" * 50, "due": {"$hf": "date", "v": "2026-01-11"}}
    keyframe = build_keyframe(CAPTION, copy_tree(tree), ("c" * 64,), formats)
    assert keyframe.entry.suffix == suffix
    assert keyframe.entry.blobs == ("c" * 64,)
    assert b'"blobs":["' + b"c" * 64 in keyframe.data
    read = read_keyframe(keyframe.data, PLAIN, "WF-1", 42)
    assert read.tree == tree
    assert read.checksum == CAPTION.checksum
    assert read.tagged


@pytest.mark.parametrize("threshold_bytes", [0, 10**9])
def test_a_large_state_is_written_a_part_at_a_time_and_read_back(threshold_bytes: int) -> None:
    items = [{"n": at, "text": "x" * 20, "raw": b"\xff"} for at in range(1_000)]
    tree = {"messages": items, "context": {"deep": {"er": items, "few": items[:3]}, "none": {}, "odd": [1.5]}}
    caption = replace(CAPTION, size_bytes=1 << 20)
    formats = Formats("json", "zstd", threshold_bytes)
    keyframe = build_keyframe(caption, copy_tree(tree), (), formats)
    assert read_keyframe(keyframe.data, PLAIN, "WF-1", 42).tree == tree


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_a_large_state_that_lost_secrets_says_so_wherever_they_were(levels: int) -> None:
    """A text with half a letter is kept as base64, and so is its placeholder."""
    hidden = Redactor(b"k" * 32, engine()).tree({"password": "\ud800 no text"})[0]["password"]
    tree: Any = to_plain("\ud800" + hidden, TypeRegistry())
    for _ in range(levels):
        tree = {"inner": tree}
    caption = replace(CAPTION, size_bytes=1 << 20)
    tree["long"] = "and so on " * 1_000
    keyframe = build_keyframe(caption, copy_tree(tree), (), Formats("json", "zstd", 0))
    assert b'"redacted":true' in keyframe.data


@pytest.mark.parametrize("formats", [PLAIN, Formats("msgpack", "zstd", 0)])
def test_a_state_without_tags_says_so(formats: Formats) -> None:
    assert not read_keyframe(build_keyframe(CAPTION, copy_tree(TREE), (), formats).data, PLAIN, "", 0).tagged


def test_the_first_keyframe_has_no_checksum_yet() -> None:
    caption = Caption("W", 1, "2026-01-11T14:30:00.000000Z")
    assert read_keyframe(build_keyframe(caption, {}, (), PLAIN).data, PLAIN, "", 0).checksum == ""


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{\n}",
        b"nothing",
        b"[]\n",
        b'{\n"$schema": "checkpoint-schema-v1.0.0", "header": {"checkpoint_id": {}}, "state": []}',
        b'{\n"$schema": "checkpoint-schema-v1.0.0", "header": 1, "state": {}}',
    ],
)
def test_other_bytes_are_no_keyframe(data: bytes) -> None:
    with pytest.raises(CheckpointCorruptError):
        read_keyframe(data, PLAIN, "W", 1)


def test_a_newer_schema_is_refused_by_name() -> None:
    data = build_keyframe(CAPTION, copy_tree(TREE), (), PLAIN).data.replace(
        b"schema-v1.0.0", b"schema-v2.0.0"
    )
    with pytest.raises(UnsupportedVersionError, match=r"v2\.0\.0"):
        read_keyframe(data, PLAIN, "W", 1)


def test_only_values_whose_blobs_are_stored_leave_a_derived_keyframe() -> None:
    known, grown, raw = "known " * 10, "grown " * 10, b"raw" * 20
    tree = {"a": [known, {"b": grown}], "c": raw, "d": "short"}
    stored = hashlib.sha256(known.encode()).hexdigest()
    lifted, blobs = lift_stored(tree, 20, lambda sha256: sha256 == stored)
    assert blobs == {stored}
    assert lifted["a"][0]["$hf"] == "blob"
    assert lifted["a"][1] == {"b": grown}
    assert lifted["c"] == raw
    assert tree["a"][0] == known
