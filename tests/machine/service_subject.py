"""States kept through the service: restored equal, and told in a trail whose signed heads stay true."""

from __future__ import annotations

import base64
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import holdfast.bootstrap
from holdfast.adapters.filesystem.disk import Disk
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointError
from holdfast.domain.note import parse_note
from holdfast.domain.treehead import TreeHead, parse_head
from tests.machine.subjects import SERVICE, Told, never_sync_sqlite, quietly
from tests.process.child import Child, Report, start
from tests.process.stating import state_of

COMMITS_PER_HEAD = 10
SETTINGS: dict[str, Any] = {"blob_threshold_bytes": 2000, "retain": False, "head_interval": 10**9}
JOURNAL_BYTES = 128 * 1024


def never_sync() -> None:
    """Let both kinds of store sync nothing: a negative control."""
    never_sync_sqlite()
    setattr(Disk, "sync", lambda *_: None)  # noqa: B010


@dataclass
class Service:
    """The whole of Holdfast over one kind of store; its signing key is kept elsewhere."""

    name: str
    keys: Path
    size_bytes: int = 96 * 1024 * 1024

    def url(self, folder: str) -> str:
        return f"file:{folder}/store" if self.name == SERVICE else f"sqlite:{folder}/store.db"

    def key_of(self, folder: str) -> str:
        """Name the key of a store: each log has its own."""
        return str(self.keys / f"{Path(folder).name}.key")

    def open(self, folder: str) -> CheckpointService:
        more = {"journal_bytes": JOURNAL_BYTES} if self.name == SERVICE else {}
        return holdfast.bootstrap.open(
            self.url(folder), signing_key=self.key_of(folder), session="s-machine", **SETTINGS, **more
        )

    def prepare(self, folder: str, *, lies: bool) -> None:
        pass

    def writers(self, folder: str, variant: int, *, lies: bool) -> list[Child]:
        return [start(quietly, self._write, folder, 1 + 2 * (variant % 2), lies)]

    def end(self, folder: str) -> None:
        pass

    def _write(self, report: Report, stop: int, folder: str, threads: int, lies: bool) -> None:
        if lies:
            never_sync()
        service = self.open(folder)
        writers = [
            threading.Thread(target=keep_states, args=(service, f"WF-{number}", report))
            for number in range(threads)
        ]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()

    def check(self, folder: str, told: Told) -> list[str]:
        place = self.url(folder).partition(":")[2]
        mark = f"{place}/holdfast.json" if self.name == SERVICE else place
        if not os.path.exists(mark):
            return [f"the store is gone with {told.count} acknowledged states"] if told.count else []
        try:
            with self.open(folder) as service:
                return [*told.violations, *_states(service, told), *_heads(service, told)]
        except CheckpointError as error:
            return [f"the store cannot be used: {error}"]


def keep_states(service: CheckpointService, workflow_id: str, report: Report) -> None:
    """Keep a growing state, and sign the trail now and then; tell what was answered."""
    latest = service.load_latest(workflow_id)
    first = latest.context["step"] + 1 if latest else 1
    for step in range(first, first + 100_000):
        made = service.create_checkpoint(workflow_id, state_of(workflow_id, step))
        report.say("ack", workflow_id, made.sequence, str(step))
        if workflow_id == "WF-0" and step % COMMITS_PER_HEAD == 0:
            signed = service.audit.keeper.anchor(create_key=True)
            assert signed is not None
            head = parse_head(parse_note(signed).text)
            report.say("head", "-", head.size, base64.b64encode(head.root).decode())


def _states(service: CheckpointService, told: Told) -> list[str]:
    """Every acknowledged state comes back equal, and numbers are dense."""
    found = []
    for workflow_id, known in told.commits.items():
        there = sorted(meta.id.sequence for meta in service.list_checkpoints(workflow_id, limit=10**6))
        if there != list(range(1, len(there) + 1)):
            found.append(f"{workflow_id}: not dense: {there[:50]}")
        # The newest are those that a crash can reach; of the others some, for old ones were checked before.
        for sequence in sorted(known)[-15:] + sorted(known)[:-15:17]:
            found += _compare(
                service, f"{workflow_id}@{sequence}", state_of(workflow_id, int(known[sequence]))
            )
    return found


def _compare(service: CheckpointService, name: str, expected: dict[str, Any]) -> list[str]:
    try:
        restored = service.restore_checkpoint(name).context
    except CheckpointError as error:
        return [f"{name}: acknowledged and lost: {error}"]
    return [] if restored == expected else [f"{name}: another state came back"]


def _heads(service: CheckpointService, told: Told) -> list[str]:
    """The trail verifies and extends every head that was ever given out."""
    audit = service.audit
    origin = audit.keeper.known_origin()
    pins = [TreeHead(origin, size, base64.b64decode(root)) for size, root in told.heads]
    report = audit.verify(audit.trust(pins=pins), payloads=True)
    return [f"the trail: {fault}" for fault in report.faults]
