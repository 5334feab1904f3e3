"""Files of a store in a folder: manifest, journal, shared page, leases, slots, order, settings, reports."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from holdfast.adapters.filesystem import leases, manifest, order, payload_slots, settings
from holdfast.adapters.filesystem.frame import (
    HEADER_BYTES,
    Kind,
    Operation,
    decode_frame,
    encode_operations,
    payload_length,
)
from holdfast.adapters.filesystem.manifest import ManifestDamaged
from holdfast.adapters.filesystem.page import Page
from holdfast.adapters.filesystem.ring import Superblock
from holdfast.adapters.filesystem.trails import session_line
from holdfast.adapters.sql import rows
from holdfast.domain.errors import CheckpointError
from holdfast.domain.quarantine import Kind as Evidence
from holdfast.domain.quarantine import Part, Quarantined, decode_report, encode_report
from tests.fuzz import mending, real_store
from tests.fuzz.target import Target, same


class OneFile:
    """A file to read from, wherever somebody looks."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def size(self, path: str) -> int | None:
        return len(self._data)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes | None:
        return self._data[offset : None if length is None else offset + length]


class PlainPage(bytearray):
    """A shared page of which this process has the only view."""

    def close(self) -> None:
        """Nothing is held."""


def _manifest(data: bytes) -> None:
    for lines in (data, mending.summed_lines(data)):
        if not lines:
            continue
        try:
            found = manifest.parse(lines)
        except ManifestDamaged:
            continue
        again = manifest.parse(found.lines())
        same(
            (again.workflow_id, again.entries, again.keyframes),
            (found.workflow_id, found.entries, found.keyframes),
        )


def _lease(data: bytes) -> None:
    for line in (data, mending.summed_lines(data)):
        found = leases.parse(line)
        if found.lease is not None:
            found.in_force(found.lease.workflow_id)


def _frame(data: bytes) -> None:
    header, payload = mending.framed(data)
    payload_length(data[:HEADER_BYTES], 0, 1 << 20)
    found = decode_frame(header, payload)
    assert found is not None
    operations = found.operations()
    same(encode_operations(operations), payload)


def _frame_seeds() -> Iterable[bytes]:
    operations = [
        Operation(Kind.WRITE, "a/b.jsonl", 7, b"line\n"),
        Operation(Kind.REPLACE, "c.json", 0, b"{}"),
        Operation(Kind.UNLINK, "d"),
    ]
    return [encode_operations(operations[:count]) for count in range(4)]


def _superblock(data: bytes) -> None:
    Superblock.decode(data)
    found = Superblock.decode(mending.superblock(data))
    assert found is not None
    same(Superblock.decode(found.encode()), found)


def _page(data: bytes) -> None:
    for raw in (data[:4096].ljust(4096, b"\0"), mending.page(data)):
        page = Page(PlainPage(raw))
        tail = page.tail()
        generation = tail.generation if tail else 1
        for cell in range(5):
            page.raise_mark(cell, generation, page.mark(cell, generation) // 2 + 1)
        page.raise_durable(generation, page.durable(generation) // 2 + 1, 7)


def _slots(data: bytes) -> None:
    files: Any = OneFile(data)
    end = 0
    for slot in payload_slots.slots(files, "payloads.jsonl"):
        assert slot.offset >= end and slot.end <= len(data) and slot.start + slot.stored_bytes == slot.end
        end = slot.end
        payload_slots.is_erasure(payload_slots.erased_slot(slot))


def _order(data: bytes) -> None:
    order.decode(data)
    order.decode(mending.order_line(data))


def _settings(data: bytes) -> None:
    found = settings._parse(data, "place")
    same(settings._parse(found.encode(), "place"), found)


def _report(data: bytes) -> None:
    found = decode_report("name", data)
    same(decode_report("name", encode_report(found)), found)


def _report_seeds() -> Iterable[bytes]:
    sha256 = hashlib.sha256(b"").hexdigest()
    part = Part("record", 3, sha256)
    report = Quarantined(
        "name",
        "WF-1@2",
        "the sum is wrong",
        sha256,
        3,
        "2026-01-11T14:30:00.000000Z",
        Evidence.CHECKPOINT,
        "WF-1",
        2,
        parts=(part,),
        files=("quarantine/name.bin",),
    )
    return [encode_report(report), encode_report(replace(report, kind=Evidence.FILE, parts=()))]


_READERS: tuple[tuple[int, Any], ...] = (
    (len(rows.ENTRY_NAMES), rows.read_entry),
    (len(rows.KEYFRAME_NAMES), rows.read_keyframe_entry),
    (4, rows.read_head),
    (4, rows.read_trail_head),
    (4, rows.read_lease),
)


def _row(data: bytes) -> None:
    """Read rows of any values: what a database answers is as foreign as any file."""
    try:
        row = json.loads(data)
    except (ValueError, RecursionError):
        return
    values = tuple(row) if isinstance(row, list) else (row,)
    for columns, read in _READERS:
        # As many columns come back as were asked for, whatever is in them.
        with suppress(CheckpointError):
            read((*values, *[None] * columns)[:columns], "place")
    for value in values:
        rows.verified(value, "", "place")


def _row_seeds() -> Iterable[bytes]:
    entries = manifest.parse(real_store.named("manifest.jsonl")[0])
    return [
        *(json.dumps(rows.entry_row(entry)).encode() for entry in entries.entries.values()),
        *(json.dumps(rows.keyframe_row(one)).encode() for one in entries.keyframes.values()),
        b'[1, "sha256:00", 2, "sha256:00"]',
        b'["wf", "owner", 1, "2026-01-11T14:30:00.000000Z"]',
    ]


TARGETS = (
    Target("manifest", _manifest, lambda: real_store.named("manifest.jsonl")),
    Target("lease_file", _lease, lambda: real_store.named("lease.json")),
    Target("session_list", _lease, lambda: [session_line("s-1") + session_line("s-2")]),
    Target("journal_frame", _frame, _frame_seeds),
    Target("ring_superblock", _superblock, lambda: [real_store.named("ring-000001")[0][:104]]),
    Target("shared_page", _page, lambda: [real_store.named("journal/shared")[0][:600]]),
    Target("payload_slots", _slots, lambda: real_store.named("payloads.jsonl")),
    Target("order_file", _order, lambda: [data[:52] for data in real_store.named("order.txt")]),
    Target("store_settings", _settings, lambda: real_store.named("holdfast.json")),
    Target("quarantine_report", _report, _report_seeds),
    Target("sql_rows", _row, _row_seeds),
)
