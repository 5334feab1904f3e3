"""Stores whose bytes are really spoilt: in their files, in their rows, in memory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast import bootstrap
from holdfast.adapters.memory import MemoryStore
from holdfast.application.service import CheckpointService
from holdfast.domain.record import Keyframe
from tests.adapters.postgres import server
from tests.application.services import make_service

KINDS = ("memory", "file", "sqlite", "postgres")

_UPDATE = """
import json, sqlite3, sys
path, statement, data, key = json.load(sys.stdin)
connection = sqlite3.connect(path)
with connection:
    connection.execute(statement, (None if data is None else bytes.fromhex(data), *key))
connection.close()
"""

Change = Callable[[bytes], bytes | None]


def flip(data: bytes) -> bytes:
    """Change one bit in the middle."""
    spoilt = bytearray(data)
    spoilt[len(data) // 2] ^= 1
    return bytes(spoilt)


class Spoiler:
    """One store, which may be opened again and again, and changed behind everybody's back."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder / "store"
        self.memory = MemoryStore()
        self.url = {
            "memory": "memory:",
            "file": str(self.folder),
            "sqlite": f"sqlite:{folder}/store.db",
            "postgres": server.url() if kind == "postgres" else "",
        }[kind]

    @contextmanager
    def opened(self, **settings: Any) -> Iterator[CheckpointService]:
        """Open the store; what is in memory stays there."""
        if self.kind == "memory":
            # Closing it would lose everything.
            yield make_service(
                self.memory, **{name: settings[name] for name in settings if name != "read_only"}
            )
            return
        chosen = {"session": "s-1", "actor": "ann", "retain": False, "background": False, **settings}
        with bootstrap.open(self.url, **chosen) as service:
            yield service

    def fill(self, count: int = 5, workflow_id: str = "WF", **more: Any) -> None:
        """Commit checkpoints of one workflow, and let them lie where they stay."""
        with self.opened() as service:
            for n in range(count):
                service.create_checkpoint(workflow_id, {"n": n, "text": "some words " * 20, **more})

    def spoil_record(self, sequence: int, change: Change = flip, workflow_id: str = "WF") -> bytes:
        """Change the stored record of a checkpoint; answer what it was."""
        with self.opened(read_only=True, audit=False) as service:
            [whole] = service._engine.kit.store.records(workflow_id, sequence, sequence)
        return self.spoil_known_record(whole, sequence, change, workflow_id)

    def spoil_known_record(
        self, whole: bytes, sequence: int, change: Change = flip, workflow_id: str = "WF"
    ) -> bytes:
        """Do that while the store is open; SQLite's locks do not survive another opening in one process."""
        if self.kind == "memory":
            records = self.memory._workflows[workflow_id].records
            spoilt = change(whole)
            if spoilt is None:
                del records[sequence]
            else:
                records[sequence] = spoilt
        elif self.kind == "file":
            [path] = [one for one in self.folder.rglob("*.deltas.jsonl") if whole in one.read_bytes()]
            path.write_bytes(path.read_bytes().replace(whole, change(whole) or b""))
        else:
            self._update("checkpoints", "workflow_id, sequence", (workflow_id, sequence), change(whole))
        return whole

    def spoil_keyframe(self, sequence: int, change: Change = flip, workflow_id: str = "WF") -> bytes:
        """Change the stored keyframe of a checkpoint; answer what it was."""
        with self.opened(read_only=True, audit=False) as service:
            whole = service._engine.kit.store.keyframe(workflow_id, sequence)
        if self.kind == "memory":
            keyframes = self.memory._workflows[workflow_id].keyframes
            keyframes[sequence] = replace_data(keyframes[sequence], change(whole) or b"")
        elif self.kind == "file":
            [path] = [one for one in self._files(f"checkpoint_{sequence:06d}.*") if one.read_bytes() == whole]
            path.write_bytes(change(whole) or b"")
        else:
            self._update("keyframes", "workflow_id, sequence", (workflow_id, sequence), change(whole))
        return whole

    def spoil_blob(self, sha256: str, change: Change = flip) -> bytes:
        """Change a stored blob; answer what it was."""
        with self.opened(read_only=True, audit=False) as service:
            whole = service._engine.kit.store.blob(sha256)
        if self.kind == "memory":
            self.memory._blobs[sha256] = change(whole) or b""
        elif self.kind == "file":
            (self.folder / "blobs" / sha256[:2] / sha256).write_bytes(change(whole) or b"")
        else:
            self._update("blobs", "sha256", (sha256,), change(whole))
        return whole

    def _files(self, pattern: str) -> list[Path]:
        return [path for path in self.folder.rglob(pattern) if not path.name.endswith(".jsonl")]

    def _update(self, table: str, columns: str, key: tuple[Any, ...], data: bytes | None) -> None:
        mark = "?" if self.kind == "sqlite" else "%s"
        places = " and ".join(f"{column} = {mark}" for column in columns.split(", "))
        statement = f"update {table} set data = {mark} where {places}"
        if self.kind == "postgres":
            with server.connected(self.url) as connection:
                connection.execute(statement, (data, *key))
            return
        spoilt = None if data is None else data.hex()
        told = json.dumps([self.url.removeprefix("sqlite:"), statement, spoilt, key])
        # From another process: opening the file past a store that has it open would undo its locks.
        subprocess.run([sys.executable, "-c", _UPDATE], input=told, text=True, check=True)


def replace_data(keyframe: Keyframe, data: bytes) -> Keyframe:
    """Answer a keyframe whose bytes are others than its entry says."""
    return replace(keyframe, data=data)


def derived_keyframes(service: CheckpointService, workflow_id: str = "WF") -> list[int]:
    """Tell which checkpoints have a keyframe beside those before them."""
    return [keyframe.sequence for keyframe in service._engine.kit.store.keyframes(workflow_id)][1:]
