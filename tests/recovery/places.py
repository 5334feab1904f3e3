"""Stores of every kind to recover from, and ways to damage what lies in them for real."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import holdfast
from holdfast.application.service import CheckpointService
from holdfast.domain.ids import folder_name, shard
from tests.adapters.postgres import server

KINDS = ("file", "sqlite", "postgres")

Change = Callable[[bytes], bytes]


def flip(data: bytes) -> bytes:
    """Change one bit in the middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@dataclass
class Place:
    """Where one store is, opened as often as wanted."""

    kind: str
    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.url = {
            "file": f"file:{self.folder / 'store'}",
            "sqlite": f"sqlite:{self.folder / 'store.db'}",
            "postgres": "",
        }[self.kind] or server.url(lock_seconds="30", reconnect_seconds="60")

    def open(self, **more: Any) -> CheckpointService:
        given = {"background": False, "retain": False, **self.settings, **more}
        if self.kind == "file":
            given.setdefault("journal_bytes", 1024 * 1024)
        return holdfast.open(self.url, **given)

    def damage_record(self, workflow_id: str, sequence: int, change: Change = flip) -> None:
        """Change the stored bytes of one record; the store is closed."""
        if self.kind == "file":
            for path in self._workflow("checkpoints", workflow_id).glob("*.deltas.jsonl"):
                self._change_line(path, f'{{"seq":{sequence},'.encode(), change)
            return
        self._change_row("checkpoints", f"workflow_id = '{workflow_id}' and sequence = {sequence}", change)

    def damage_keyframe(self, workflow_id: str, sequence: int, change: Change = flip) -> None:
        """Change the stored bytes of one keyframe; the store is closed."""
        if self.kind == "file":
            [path] = self._workflow("checkpoints", workflow_id).glob(f"checkpoint_{sequence:06}.json*")
            path.write_bytes(change(path.read_bytes()))
            return
        self._change_row("keyframes", f"workflow_id = '{workflow_id}' and sequence = {sequence}", change)

    def damage_event(self, workflow_id: str, seq: int, change: Change = flip) -> None:
        """Change the stored bytes of one event; the store is closed."""
        if self.kind == "file":
            for path in self._workflow("events", workflow_id).glob("*.jsonl"):
                self._change_line(path, f'{{"seq":{seq},'.encode(), change)
            return
        self._change_row("events", f"workflow_id = '{workflow_id}' and seq = {seq}", change)

    def damage_blobs(self, change: Change = flip) -> None:
        """Change the stored bytes of every blob; the store is closed."""
        if self.kind == "file":
            for path in (self.folder / "store" / "blobs").rglob("*"):
                if path.is_file():
                    path.write_bytes(change(path.read_bytes()))
            return
        self._change_row("blobs", "true", change)

    def keyframes(self, workflow_id: str) -> list[int]:
        with self.open() as service:
            return [one.sequence for one in service._engine.kit.store.keyframes(workflow_id)]

    def _workflow(self, room: str, workflow_id: str) -> Path:
        return self.folder / "store" / room / shard(workflow_id) / folder_name(workflow_id)

    def _change_line(self, path: Path, start: bytes, change: Change) -> None:
        lines = path.read_bytes().splitlines(keepends=True)
        changed = [change(line) if line.startswith(start) else line for line in lines]
        path.write_bytes(b"".join(changed))

    def _change_row(self, table: str, where: str, change: Change) -> None:
        if self.kind == "sqlite":
            with sqlite3.connect(self.folder / "store.db") as database:
                rows = database.execute(f"select rowid, data from {table} where {where}").fetchall()
                for row, data in rows:
                    database.execute(f"update {table} set data = ? where rowid = ?", (change(data), row))
            database.close()
            assert rows
            return
        with server.connected(self.url) as connection:
            found = connection.execute(f"select ctid::text, data from {table} where {where}").fetchall()
            for ctid, data in found:
                connection.execute(
                    f"update {table} set data = %s where ctid = %s::tid", (change(bytes(data)), ctid)
                )
        assert found
