"""Forks while a store is open: run as `python -m tests.process.forking NAME JSON`."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from holdfast.adapters.filesystem.store import FilesystemStore
from tests.process.child import Report, start
from tests.process.children import commit_next
from tests.process.commits import Acknowledged, check_store
from tests.process.disks import KillingDisk


def is_held(root: str, name: str) -> bool:
    """Whether anybody holds a lock of the store's."""
    handle = os.open(f"{root}/journal/{name}", os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


class Memory:
    """Stands where a report's pipe would be, in the process itself."""

    def __init__(self, told: Acknowledged) -> None:
        self._told = told

    def say(self, word: str, workflow_id: str, number: int, rest: str = "") -> None:
        self._told.note(f"{word} {workflow_id} {number} {rest}")


def _commit_some(store: FilesystemStore, workflow_id: str, count: int, report: Any) -> None:
    head = store.head(workflow_id)
    for _ in range(count):
        head = commit_next(store, workflow_id, head, 300, "w", report)


def child_commits(options: dict[str, Any]) -> list[str]:
    """A child uses the inherited store, closes it and leaves; the parent's locks stay and it goes on."""
    root, told = options["root"], Acknowledged()
    store = FilesystemStore.open(root, journal_bytes=65536)
    parent = Memory(told)
    _commit_some(store, "WF-parent", 5, parent)

    def work(report: Report, _: int) -> None:
        _commit_some(store, "WF-child", 5, report)
        _commit_some(store, "WF-shared", 5, report)
        if options["closes"]:
            store.close()

    child = start(work)
    if child.end() != 0:
        told.violations.append("the child failed")
    for line in child.lines:
        told.note(line)
    if not is_held(root, "users"):
        told.violations.append("the child's end took the parent's lock away")
    _commit_some(store, "WF-parent", 5, parent)
    _commit_some(store, "WF-shared", 5, parent)
    found = check_store(store, told)
    store.close()
    return found + _reopened(root, told, commits=25)


def _reopened(root: str, told: Acknowledged, *, commits: int) -> list[str]:
    store = FilesystemStore.open(root, journal_bytes=65536)
    found = check_store(store, told)
    store.close()
    return found if told.count == commits else [*found, f"{told.count} of {commits} commits were made"]


def while_committing(options: dict[str, Any]) -> list[str]:
    """Fork again and again while threads of the parent commit; every child commits too."""
    root, told = options["root"], Acknowledged()
    store = FilesystemStore.open(root, journal_bytes=65536)
    stop = threading.Event()
    reading, writing = os.pipe()

    def write(workflow_id: str) -> None:
        head = store.head(workflow_id)
        while not stop.is_set():
            head = commit_next(store, workflow_id, head, 300, "p", Report(writing))

    threads = [threading.Thread(target=write, args=(f"WF-p{n}",)) for n in range(2)]
    drain = threading.Thread(target=_drain, args=(reading, told))
    for thread in (drain, *threads):
        thread.start()
    lines: list[str] = []
    for number in range(options["forks"]):
        child = start(_commit_three, store, f"WF-c{number}")
        if child.end() != 0:
            told.violations.append(f"child {number} failed")
        lines += child.lines
    stop.set()
    for thread in threads:
        thread.join()
    os.close(writing)
    drain.join()
    for line in lines:
        told.note(line)
    store.close()
    if len(lines) != 3 * options["forks"]:
        told.violations.append(f"{len(lines)} commits by {options['forks']} children")
    return _reopened(root, told, commits=told.count)


def _commit_three(report: Report, _: int, store: FilesystemStore, workflow_id: str) -> None:
    _commit_some(store, workflow_id, 3, report)


def _drain(handle: int, told: Acknowledged) -> None:
    with os.fdopen(handle) as lines:
        for line in lines:
            told.note(line)


def orphan(options: dict[str, Any]) -> list[str]:
    """A child that never touches the store outlives a parent killed inside a commit: it holds no lock."""
    root = options["root"]
    FilesystemStore.open(root, journal_bytes=65536).close()
    reading, writing = os.pipe()

    def parent(report: Report, _: int) -> None:
        disk = KillingDisk(root)
        store = FilesystemStore.open(root, journal_bytes=65536, disk=disk, background=False)
        _commit_some(store, "WF-0", 1, report)
        idle = start(_wait_for, reading)
        # Only when it runs has it let go of what it inherited.
        idle.read_line()
        report.say("idle", "WF-0", idle.pid)
        disk.kill_at(disk.count + 1)
        _commit_some(store, "WF-0", 1, report)

    child = start(parent)
    child.read_line()
    idle_line = child.read_line() or ""
    _, status = os.waitpid(child.pid, 0)
    held = [name for name in ("lock", "users", "applier") if is_held(root, name)]
    os.kill(int(idle_line.split()[2]), signal.SIGKILL)
    os.close(writing)
    found = [f"an idle child holds {name}" for name in held]
    if os.waitstatus_to_exitcode(status) != -signal.SIGKILL:
        found.append("the parent was not killed inside its commit")
    return found


def _wait_for(report: Report, _: int, handle: int) -> None:
    report.say("idle", "WF-0", 0)
    os.read(handle, 1)


LOOPS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "child_commits": child_commits,
    "while_committing": while_committing,
    "orphan": orphan,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(LOOPS[sys.argv[1]](json.loads(sys.argv[2]))))
