"""What happens in a process of its own when the room is taken away.

`python -m tests.faults.scenes NAME JSON`: each scene answers what was told to callers and what is stored
afterwards; the tests judge.
"""

from __future__ import annotations

import json
import os
import queue
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holdfast
from holdfast.application.faults.health import Step
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointError
from holdfast.domain.ladder import Mode
from tests.faults.rooms import JOURNAL_BYTES, LimitedRoom, QuotaRoom, TmpfsRoom

NOBODY = 65534
WAIT_SECONDS = 60
#: Too large for the journal: it needs a file.
LARGE = 400_000

Told = list[dict[str, Any]]
ROOMS: dict[str, Callable[[str], LimitedRoom | TmpfsRoom | QuotaRoom]] = {
    "limit": LimitedRoom,
    "tmpfs": TmpfsRoom,
    "quota": QuotaRoom,
}


class Scene:
    """One service over a store in a room, and everything that it told."""

    def __init__(self, url: str, **settings: Any) -> None:
        more = {"journal_bytes": JOURNAL_BYTES, "compression": "none", "retain": False, "on_fault": "degrade"}
        self.url = url
        self.service = holdfast.open(url, **{**more, **settings})
        self.receipts: Told = []
        self.steps: list[str] = []
        self._steps: queue.SimpleQueue[Step] = queue.SimpleQueue()
        #: Where the ladder stands, going by the last step that was heard of.
        self._heard = Mode.FULL
        self.service.on_mode_change(self._steps.put)
        self._step = 0

    def state(self, size: int = 10, workflow_id: str = "WF") -> Any:
        """Record a state of about a size, unlike the one before."""
        self._step += 1
        text = (f"{self._step:08d}" * (size // 8 + 1))[:size]
        made = self.service.create_checkpoint(workflow_id, {"step": self._step, "text": text})
        self._keep("state", made.sequence, made.durable, made.mode)
        return made

    def event(self) -> Any:
        """Record an event."""
        self._step += 1
        made = self.service.append_event("WF", "FACT", {"step": self._step})
        self._keep("event", made.seq, made.durable, made.mode)
        return made

    def until(self, mode: Mode) -> None:
        """Wait until the ladder stands on a step, and has told so."""
        # A step is taken before it is told, by another thread: where the two differ, one more is to be told.
        while self._heard is not mode or self.service.health().mode is not mode:
            self._hear(self._steps.get(timeout=WAIT_SECONDS))

    def _hear(self, step: Step) -> None:
        self.steps.append(f"{step.before}->{step.after}")
        self._heard = step.after

    def _keep(self, kind: str, number: int, durable: bool, mode: Mode) -> None:
        told = {"kind": kind, "step": self._step, "number": number, "durable": durable, "mode": mode.value}
        self.receipts.append(told)

    def end(self) -> dict[str, Any]:
        """Close, open again, and answer everything."""
        counters = dict(self.service.health().counters)
        self.service.close()
        # Whoever closes has told everything.
        while not self._steps.empty():
            self._hear(self._steps.get())
        return {
            "receipts": self.receipts,
            "steps": self.steps,
            "counters": counters,
            **stored(self.url),
        }


def stored(url: str, **settings: Any) -> dict[str, Any]:
    """Read a whole store, verified."""
    with holdfast.open(url, create=False, **settings) as service:
        metas = service.list_checkpoints("WF", limit=10_000)
        events = service.events("WF")
        problems = [service.validate_checkpoint(meta.id).problems for meta in metas]
        return {
            "states": {meta.id.sequence: _step_of(service, meta) for meta in metas},
            "facts": [event.data["step"] for event in events if event.type == "FACT"],
            "told": [event.data for event in events if event.type == "STORE_DEGRADED"],
            "written": [event.data for event in events if event.type == "HELD_WRITTEN"],
            "audit": [event.type for event in service.audit.query_events()],
            "problems": [str(problem) for found in problems for problem in found],
            "faults": [str(fault) for fault in service.audit.verify(payloads=True).faults],
        }


def _step_of(service: CheckpointService, meta: Any) -> Any:
    return service.restore_checkpoint(meta.id).context["step"]


def _room(options: dict[str, Any]) -> LimitedRoom | TmpfsRoom | QuotaRoom:
    return ROOMS[options["room"]](options["folder"])


def full_disk(options: dict[str, Any]) -> dict[str, Any]:
    """Take the room away from states; events still fit into the journal; then give it back."""
    room = _room(options)
    scene = Scene(f"{room.folder}/store")
    scene.state()
    room.fill()
    for _ in range(3):
        scene.state(LARGE)
        scene.event()
    scene.until(Mode.EVENT_ONLY)
    room.give_back()
    scene.until(Mode.FULL)
    scene.state()
    return scene.end()


def full_journal(options: dict[str, Any]) -> dict[str, Any]:
    """Go on until events do not fit into the journal either; then give the room back."""
    room = _room(options)
    scene = Scene(f"{room.folder}/store")
    scene.state()
    room.fill()
    scene.state(LARGE)
    scene.until(Mode.EVENT_ONLY)
    for _ in range(20_000):
        if scene.event().mode is Mode.MEMORY_ONLY:
            break
    scene.state(LARGE)
    scene.event()
    scene.until(Mode.MEMORY_ONLY)
    room.give_back()
    scene.until(Mode.FULL)
    return scene.end()


def nothing_at_all(options: dict[str, Any]) -> dict[str, Any]:
    """Let nothing be written, then events only, then everything."""
    room = LimitedRoom(options["folder"])
    scene = Scene(options.get("url") or f"{room.folder}/store")
    scene.state()
    room.shut()
    scene.event()
    scene.state(LARGE)
    scene.until(Mode.MEMORY_ONLY)
    if "url" not in options:
        room.fill()
        scene.until(Mode.EVENT_ONLY)
        scene.event()
    room.give_back()
    scene.until(Mode.FULL)
    return scene.end()


def revoked(options: dict[str, Any]) -> dict[str, Any]:
    """Take the rights to the store's folders from a user that is not root, and fill the memory budget."""
    folder = options["folder"]
    if os.geteuid() == 0:
        # Everything is imported once before: afterwards not even modules may be readable.
        Scene(f"{folder}/first").end()
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    more = {"emergency_path": f"{folder}/emergency", "memory_budget_bytes": 3 * LARGE}
    scene = Scene(f"{folder}/store", **more)
    scene.state()
    _chmod(f"{folder}/store", 0o555)
    for _ in range(6):
        scene.state(LARGE)
    scene.until(Mode.EMERGENCY)
    held = scene.service.health()
    place = (held.emergency_place or "").removeprefix("file:")
    _chmod(f"{folder}/store", 0o755)
    scene.until(Mode.FULL)
    answer = {**scene.end(), "held_bytes": held.held_bytes, "budget": held.memory_bytes}
    return {**answer, "emergency": place, "in_emergency": stored(place)["states"]}


def _chmod(folder: str, mode: int) -> None:
    for path in [Path(folder), *Path(folder).rglob("*")]:
        if path.is_dir() and "journal" not in path.parts:
            path.chmod(mode)


def room_by_pruning(options: dict[str, Any]) -> dict[str, Any]:
    """Fill the disk of a store that holds a lot which retention lets go."""
    room = _room(options)
    old = {"retain": True, "retain_count": 2, "retain_days": 0}
    with holdfast.open(f"{room.folder}/store", retain=False, compression="none") as service:
        for n in range(12):
            service.create_checkpoint("OLD", {"n": n, "noise": [os.urandom(1000).hex() for _ in range(250)]})
    scene = Scene(f"{room.folder}/store", on_fault=options["on_fault"], **old)
    scene.state()
    room.fill()
    errors = []
    for _ in range(2):
        try:
            scene.state(LARGE)
        except CheckpointError as error:
            errors.append(type(error).__name__)
    with holdfast.open(f"{room.folder}/store", read_only=True, audit=False) as reader:
        kept = len([meta for meta in reader.list_checkpoints("OLD") if not meta.pruned])
    room.give_back()
    return {**scene.end(), "kept": kept, "errors": errors}


def killed(options: dict[str, Any]) -> dict[str, Any]:
    """Tell each receipt on standard output and die with everything that waits in memory."""
    room = LimitedRoom(options["folder"])
    scene = Scene(f"{room.folder}/store")
    if options["lies"]:
        _lie()
    for n in range(30):
        if n == 10:
            room.fill()
        if n == 20:
            room.shut()
        scene.state(LARGE if n % 3 == 0 else 10)
        scene.event()
    os.write(1, json.dumps(scene.receipts).encode())
    os.kill(os.getpid(), 9)
    raise AssertionError


def _lie() -> None:
    """For the negative control: call durable what is not."""
    from holdfast.application.faults import degrading

    honest = degrading._mark
    degrading._mark = lambda ticket, mode, *, durable: honest(ticket, mode, durable=True)


SCENES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    scene.__name__: scene
    for scene in (full_disk, full_journal, nothing_at_all, revoked, room_by_pruning, killed)
}

if __name__ == "__main__":
    print(json.dumps(SCENES[sys.argv[1]](json.loads(sys.argv[2]))))
