"""Many writers at once: run as `python -m tests.process.writers NAME JSON`."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.conformance.history import in_threads
from holdfast.domain.errors import CheckpointConflictError, CheckpointWriteError, StoreClosedError
from tests.process import commits, telling
from tests.process.child import Report, start
from tests.process.children import TellingStore, leftovers
from tests.process.commits import Acknowledged, check_store

JOURNAL_BYTES = 65536
CONTROL_SECONDS = 8


class LocklessDisk(Disk):
    """Gives every lock to everybody, for the negative control; only opening and closing are serialised."""

    def lock(self, handle: int, *, shared: bool = False, wait: bool = True) -> bool:
        name = os.readlink(f"/proc/self/fd/{handle}").rpartition("/")[2]
        if name == "users":
            return super().lock(handle, shared=shared, wait=wait)
        return True

    def unlock(self, handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_UN)


def compete(store: FilesystemStore, workflow_id: str, count: int, writer: str, report: Report) -> None:
    """Commit until `count` of ours are in; a lost race is read again and tried again."""
    done = 0
    while done < count:
        commit = commits.make_commit(store.head(workflow_id), workflow_id, pad_bytes=400, writer=writer)
        (outcome,) = store.commit([commit])
        if isinstance(outcome, CheckpointConflictError):
            report.say("conflict", workflow_id, 0)
        elif outcome is not None:
            raise outcome
        else:
            head = commit.head
            report.say("ack", workflow_id, head.sequence, head.checksum)
            done += 1


def _write_in_threads(report: Report, gate: int, number: int, options: dict[str, Any]) -> None:
    """One process of the crowd, which waits for the others."""
    root = options["root"]
    disk = LocklessDisk(root) if options["lockless"] else None
    if options["lockless"]:
        # What they make of the store may keep a writer busy for ever, which is a failure as well.
        signal.alarm(CONTROL_SECONDS)
    store = TellingStore.open(root, journal_bytes=JOURNAL_BYTES, disk=disk)
    errors: list[BaseException] = []
    report.say("opened", "-", number)
    select.select([gate], [], [])
    if options["lockless"]:
        signal.alarm(CONTROL_SECONDS)

    def write(thread: int) -> None:
        workflow_id = "WF-shared" if options["shared"] else f"WF-{number}-{thread}"
        try:
            compete(store, workflow_id, options["commits"], f"{number}.{thread}", report)
        except BaseException as error:
            errors.append(error)

    in_threads([partial(write, thread) for thread in range(options["threads"])])
    store.settle()
    store.close()
    if errors:
        raise errors[0]


def crowd(options: dict[str, Any]) -> dict[str, Any]:
    """Processes with threads, each with its own opening, all writing at once."""
    children = [start(_write_in_threads, number, options) for number in range(options["processes"])]
    told, conflicts, violations = Acknowledged(), 0, []
    # However late one of them comes to it: nobody is done before.
    for child in children:
        child.read_line()
    for child in children:
        with suppress(BrokenPipeError):
            child.stop()
    for child in children:
        if child.end() != 0:
            violations.append("a writer failed")
    for line in (line for child in children for line in child.lines):
        conflicts += line.startswith("conflict")
        told.note(line)
    violations += examine(options["root"], told)
    wanted = options["processes"] * options["threads"] * options["commits"]
    if told.count != wanted:
        violations.append(f"{told.count} of {wanted} commits were acknowledged")
    return {"acknowledged": told.count, "conflicts": conflicts, "violations": violations[:20]}


def examine(root: str, told: Acknowledged) -> list[str]:
    """Open the store when all are gone: it holds what was acknowledged, and nothing else."""
    try:
        store = FilesystemStore.open(root, journal_bytes=JOURNAL_BYTES, background=False)
        found = [*check_store(store, told), *telling.check_trails(store)]
        total = sum(len(list(store.entries(workflow_id))) for workflow_id in store.workflows())
        store.close()
    except Exception as error:
        return [f"cannot even be read: {error!r}"]
    if total != told.count:
        found.append(f"{total} commits are there, {told.count} were acknowledged")
    return found + [f"left behind: {path}" for path in leftovers(root)]


def closing(options: dict[str, Any]) -> dict[str, Any]:
    """Threads commit while another closes: each commit is acknowledged and kept, or refused as closed."""
    violations: list[str] = []
    acknowledged = 0
    for number in range(options["rounds"]):
        root = f"{options['root']}/{number}"
        told = _commit_while_closing(root)
        acknowledged += told.count
        again = FilesystemStore.open(root, journal_bytes=JOURNAL_BYTES, background=False)
        violations += check_store(again, told)
        again.close()
    return {"acknowledged": acknowledged, "violations": violations[:20]}


def _commit_while_closing(root: str) -> Acknowledged:
    store, told = FilesystemStore.open(root, journal_bytes=JOURNAL_BYTES), Acknowledged()
    reading, writing = os.pipe()
    begun = threading.Semaphore(0)

    def write(thread: int) -> None:
        try:
            while True:
                compete(store, f"WF-{thread}", 1, str(thread), Report(writing))
                begun.release()
        except StoreClosedError:
            return
        except CheckpointWriteError as error:
            # Appended before the end, not synced by us: whether it is durable is said to be unknown.
            if "closed before" not in str(error):
                told.violations.append(f"{error!r}")
        except Exception as error:
            told.violations.append(f"{error!r} escaped from a commit")

    def close() -> None:
        for _ in range(10):
            begun.acquire()
        try:
            store.close()
        except Exception as error:
            told.violations.append(f"{error!r} escaped from the end")

    in_threads([*(partial(write, thread) for thread in range(4)), close])
    os.close(writing)
    with os.fdopen(reading) as lines:
        for line in lines:
            told.note(line)
    return told


LOOPS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "crowd": crowd,
    "closing": closing,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(LOOPS[sys.argv[1]](json.loads(sys.argv[2]))))
