"""Checking the trail: nothing said about a sound one, and whatever is cut or changed is named."""

from __future__ import annotations

import pytest

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.order import RECORD_BYTES
from holdfast.adapters.filesystem.store import FilesystemStore
from tests.adapters.filesystem.audits import tell, told

TRAIL, PAYLOADS = layout.trail_path("s-1"), layout.payloads_path("s-1")


@pytest.fixture
def settled(store):
    for number in range(6):
        tell(store, told(number, f"s-{number % 2}", why=f"reason {number}"))
    tell(store, told(9), erased=(("s-0", 2),))
    store.settle()
    return store


def places(store):
    return [finding.place for finding in store.check()]


def test_a_sound_trail_has_no_findings(settled, root):
    tell(settled, told(10, why="pending"), told(11, "s-new"))
    assert places(settled) == []
    reader = FilesystemStore.open(str(root), read_only=True)
    assert places(reader) == []
    reader.close()


def flip(data, at):
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("path", "damage", "named"),
    [
        (TRAIL, lambda data: flip(data, 100), TRAIL),
        (TRAIL, lambda data: flip(data, len(data) - 1), TRAIL),
        (TRAIL, lambda data: data[:-1], TRAIL),
        (TRAIL, lambda data: data[: data.find(b"\n") + 1], TRAIL),
        (TRAIL, lambda data: data + data, TRAIL),
        (TRAIL, lambda data: b"", TRAIL),
        (PAYLOADS, lambda data: flip(data, 2), PAYLOADS),
        (PAYLOADS, lambda data: flip(data, data.find(b"reason")), PAYLOADS),
        (PAYLOADS, lambda data: data[:256], PAYLOADS),
        (PAYLOADS, lambda data: data[:-1], PAYLOADS),
        (layout.ORDER, lambda data: flip(data, 3), layout.ORDER),
        (layout.ORDER, lambda data: data[:-1], layout.ORDER),
        (layout.ORDER, lambda data: data[:-RECORD_BYTES], TRAIL),
        (layout.ORDER, lambda data: b"", TRAIL),
        (layout.ORDER, lambda data: data[RECORD_BYTES:] + data[:RECORD_BYTES], layout.trail_path("s-0")),
        (layout.SESSIONS, lambda data: flip(data, 3), layout.SESSIONS),
        (layout.SESSIONS, lambda data: b"", layout.SESSIONS),
    ],
)
def test_damage_is_named(settled, root, path, damage, named):
    file = root / path
    file.write_bytes(damage(file.read_bytes()))
    reader = FilesystemStore.open(str(root), read_only=True)
    assert named in places(reader)
    reader.close()


def test_counts_and_bytes_of_the_trail_are_told(settled):
    stats = settled.stats()
    assert (stats["audit_entries"], stats["sessions"]) == (9, 2)
    assert stats["kinds"]["audit"]["files"] == 6 and stats["kinds"]["audit"]["bytes"] > 3000
