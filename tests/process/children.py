"""What runs in processes of its own: writers that are killed, and the loops that kill them.

`python -m tests.process.children NAME JSON` runs one loop in a process without threads, so that it may
fork, and prints its result as JSON.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import Head
from tests.process import commits, telling
from tests.process.child import Report, must_stop, start
from tests.process.commits import Acknowledged
from tests.process.disks import ForgetfulDisk, KillingDisk

KEPT_GROUPS = 2
SCENARIO_COMMITS = 34


# -- writers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """What a writer does until it is killed or told to stop."""

    root: str
    workflows: tuple[str, ...] = ("WF-0",)
    journal_bytes: int = 65536
    commits_max: int = 100_000
    pad_bytes_max: int = 3000
    keyframes: bool = False
    prunes: bool = False
    erases: bool = False
    closes: bool = False
    background: bool = True
    writer: str = "w"
    #: Two ways to lie, for negative controls: acknowledge first, and a disk that forgets what is written.
    acknowledges_first: bool = False
    forgets: str = ""
    #: Another: what is done is told in the trail by a commit of its own, afterwards.
    tells_apart: bool = False


class TellingStore(telling.Telling, FilesystemStore):
    """Whatever is done is told in trails, together with it."""


def write_until_killed(report: Report, stop: int, plan: Plan, disk: Disk | None = None) -> None:
    """Commit to each workflow in a thread of its own, telling about each commit once it is acknowledged."""
    store = open_store(plan, disk)
    if len(plan.workflows) == 1:
        _write(plan, store, plan.workflows[0], report, stop)
    else:
        threads = [
            threading.Thread(target=_write, args=(plan, store, workflow_id, report, stop))
            for workflow_id in plan.workflows
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    store.close()


def open_store(plan: Plan, disk: Disk | None = None) -> TellingStore:
    if plan.forgets:
        disk = ForgetfulDisk(plan.root, plan.forgets)
    store = TellingStore.open(
        plan.root, journal_bytes=plan.journal_bytes, background=plan.background, disk=disk
    )
    store.tells_apart = plan.tells_apart
    return store


def check_store(store: FilesystemStore, told: Acknowledged) -> list[str]:
    """Violations in the whole store, trails included."""
    return [*commits.check_store(store, told), *telling.check_trails(store)]


def _write(plan: Plan, store: FilesystemStore, workflow_id: str, report: Report, stop: int) -> None:
    rng = random.Random(workflow_id)
    head = store.head(workflow_id)
    for count in range(1, plan.commits_max + 1):
        if must_stop(stop):
            return
        pad_bytes = rng.randrange(plan.pad_bytes_max)
        early = plan.acknowledges_first
        head = commit_next(store, workflow_id, head, pad_bytes, plan.writer, report, early=early)
        _maintain(plan, store, workflow_id, head, report)
        if plan.closes and count % 7 == 0:
            store.close()
            report.say("closed", workflow_id, head.sequence)
            store = open_store(plan)
            head = store.head(workflow_id)


def commit_next(
    store: FilesystemStore,
    workflow_id: str,
    head: Head,
    pad_bytes: int,
    writer: str,
    report: Report,
    *,
    early: bool = False,
) -> Head:
    """One commit, then the acknowledgement (or before it, for a negative control)."""
    commit = commits.make_commit(head, workflow_id, pad_bytes=pad_bytes, writer=writer)
    head = commit.head
    if early:
        report.say("ack", workflow_id, head.sequence, head.checksum)
    (outcome,) = store.commit([commit])
    if outcome is not None:
        raise outcome
    if not early:
        report.say("ack", workflow_id, head.sequence, head.checksum)
    return head


def _maintain(plan: Plan, store: FilesystemStore, workflow_id: str, head: Head, report: Report) -> None:
    """A keyframe at the start of each group, a payload erased, and a prune that keeps the last groups."""
    group = commits.group_of(head.sequence)
    if plan.erases and head.sequence == group:
        seq = store.trail_head(telling.session_of(workflow_id)).seq
        store.commit([telling.erasure(workflow_id, seq)])
        report.say("erased", workflow_id, seq)
    if plan.keyframes and head.sequence == group:
        store.put_keyframe(workflow_id, commits.make_keyframe(group))
        report.say("keyframe", workflow_id, group)
    oldest_kept = group - KEPT_GROUPS * commits.GROUP_SIZE
    if plan.prunes and head.sequence == group and oldest_kept > 1:
        report.say("pruning", workflow_id, oldest_kept)
        store.remove(workflow_id, commits.prune_through(oldest_kept))
        report.say("pruned", workflow_id, oldest_kept)


# -- loops that kill -------------------------------------------------------------------------------


@dataclass(slots=True)
class Result:
    kills: int = 0
    acknowledged: int = 0
    reads: int = 0
    violations: list[str] = field(default_factory=list)

    def print(self) -> None:
        sys.stdout.write(json.dumps({name: getattr(self, name) for name in self.__slots__}))


def verify(root: str, told: Acknowledged, *, journal_bytes: int, label: str) -> list[str]:
    """Open the store as the next process would, check it, settle it, check the plain files."""
    found = []
    try:
        store = FilesystemStore.open(root, journal_bytes=journal_bytes, background=False)
        found += check_store(store, told)
        # Opening wipes out what a killed writer had erased: no need to settle first.
        marks = telling.erased_marks(store)
        found += [f"{mark!r} was erased and is still there" for mark in left_of(root, marks)]
        store.settle()
        found += check_store(store, told)
        store.close()
    except CheckpointError as error:
        found.append(f"the store cannot be used: {error}")
    found += [f"{path}: temporary file left behind" for path in leftovers(root)]
    return [f"{label}: {text}" for text in found]


def left_of(root: str, marks: list[bytes]) -> list[bytes]:
    """Answer which of the marks are in any file."""
    files = [path.read_bytes() for path in Path(root).rglob("*") if path.is_file()] if marks else []
    return [mark for mark in marks if any(mark in data for data in files)]


def leftovers(root: str) -> list[str]:
    return [str(path) for path in Path(root).rglob("*.tmp")]


def kill_loop(options: dict[str, Any]) -> None:
    """Start a writer, kill it at some moment, reopen, check; the store lives through several rounds."""
    rng = random.Random(options["seed"])
    result = Result()
    told = Acknowledged()
    root = ""
    for number in range(options["rounds"]):
        if number % options["rounds_per_store"] == 0:
            told, root = Acknowledged(), f"{options['folder']}/{number}"
        plan = Plan(root, **options["plan"])
        _kill_one(plan, rng, told)
        result.kills += 1
        label = f"seed {options['seed']}, round {number}"
        found = verify(root, told, journal_bytes=plan.journal_bytes, label=label)
        if found:
            result.violations += found
            break
        result.acknowledged += told.count if (number + 1) % options["rounds_per_store"] == 0 else 0
    result.print()


def _kill_one(plan: Plan, rng: random.Random, told: Acknowledged) -> None:
    child = start(write_until_killed, plan)
    for _ in range(rng.randrange(1, 40)):
        if child.read_line() is None:
            break
    for _ in range(rng.randrange(20_000)):
        pass  # Not to wait for anything: only so that death comes at any instant.
    child.kill()
    status = child.end()
    if status != -signal.SIGKILL:
        told.violations.append(f"the writer ended by itself: {status}")
    for line in child.lines:
        told.note(line)


def neighbour_loop(options: dict[str, Any]) -> None:
    """Kill one of two writers; the other goes on, and what the dead one had acknowledged stays."""
    rng = random.Random(options["seed"])
    result = Result()
    for number in range(options["rounds"]):
        told, root = Acknowledged(), f"{options['folder']}/{number}"
        victim, survivor = (
            Plan(root, workflows=(f"WF-{who}",), writer=who, **options["plan"]) for who in ("a", "b")
        )
        living = start(write_until_killed, survivor)
        living.read_line()
        _kill_one(victim, rng, told)
        result.kills += 1
        for _ in range(40):
            if living.read_line() is None:
                told.violations.append("the survivor died too")
                break
        living.stop()
        if living.end() != 0:
            told.violations.append("the survivor failed")
        for line in living.lines:
            told.note(line)
        result.acknowledged += told.count
        label = f"seed {options['seed']}, round {number}"
        result.violations += verify(root, told, journal_bytes=65536, label=label)
        if result.violations:
            break
    result.print()


def standard_scenario(report: Report, _: int, disk: Disk) -> None:
    """Everything a store does in its life, in a fixed order: the same operations in every run."""
    plan = Plan(disk.root, workflows=("WF-0", "WF-1"), journal_bytes=16384, background=False)
    plan = replace(plan, keyframes=True, prunes=True, erases=True)
    store = open_store(plan, disk)
    heads = {workflow_id: store.head(workflow_id) for workflow_id in plan.workflows}
    for count in range(1, SCENARIO_COMMITS + 1):
        for workflow_id, head in heads.items():
            head = commit_next(store, workflow_id, head, 37 * count % 400, "w", report)
            heads[workflow_id] = head
            _maintain(plan, store, workflow_id, head, report)
        if count % 8 == 0:
            store.settle()
    store.close()


def count_operations(options: dict[str, Any]) -> None:
    """How many operations the standard scenario has."""
    root = f"{options['folder']}/counted"
    disk = KillingDisk(root)
    handle = os.open(os.devnull, os.O_WRONLY)
    standard_scenario(Report(handle), handle, disk)
    sys.stdout.write(str(disk.count))


def enumerated_loop(options: dict[str, Any]) -> None:
    """Kill the standard scenario at each chosen operation, watched by a reader that may not write."""
    result = Result()
    for kill_at in options["kill_at"]:
        root, told = f"{options['folder']}/{kill_at}", Acknowledged()
        label = f"{options['moment']} operation {kill_at}"
        disk = KillingDisk(root, kill_at, options["moment"])
        child = start(standard_scenario, disk)
        watcher = Watcher(root, told, label)
        while (line := child.read_line()) is not None:
            told.note(line)
            watcher.look(line)
        if child.end() != -signal.SIGKILL:
            told.violations.append(f"{label}: it was not killed")
        result.kills += 1
        watcher.check("after the kill")
        if os.path.exists(f"{root}/holdfast.json"):
            _go_on(root, told, watcher)
        watcher.check("after another writer went on")
        result.violations += watcher.violations
        result.violations += verify(root, told, journal_bytes=16384, label=label)
        result.acknowledged += told.count
        result.reads += watcher.reads
        watcher.close()
    result.print()


def _go_on(root: str, told: Acknowledged, watcher: Watcher) -> None:
    """Another process takes the store up and commits more."""
    child = start(_commit_more, root)
    while (line := child.read_line()) is not None:
        told.note(line)
        watcher.look(line)
    if child.end() != 0:
        told.violations.append("the next writer failed")


def _commit_more(report: Report, _: int, root: str) -> None:
    store = open_store(Plan(root, journal_bytes=16384, background=False))
    for workflow_id in ("WF-0", "WF-1"):
        commit_next(store, workflow_id, store.head(workflow_id), 100, "x", report)
    store.close()


class Watcher:
    """A reader without locks, opened as soon as there is a store, that looks after each acknowledgement."""

    def __init__(self, root: str, told: Acknowledged, label: str) -> None:
        self._root = root
        self._told = told
        self._label = label
        self._store: FilesystemStore | None = None
        self.reads = 0
        self.violations: list[str] = []

    def look(self, line: str) -> None:
        """What was just acknowledged must be visible at once."""
        word, workflow_id, number, *_ = line.split()
        store = self._reader()
        if word == "ack" and store is not None:
            self.reads += 1
            if store.head(workflow_id).sequence < int(number):
                self.violations.append(f"{self._label}: {workflow_id}@{number} not seen by the reader")

    def check(self, when: str) -> None:
        """Everything acknowledged is there and nothing is half there."""
        store = self._reader()
        if store is not None:
            self.reads += 1
            found = check_store(store, self._told)
            self.violations += [f"{self._label}, reader {when}: {text}" for text in found]

    def _reader(self) -> FilesystemStore | None:
        if self._store is None and os.path.exists(f"{self._root}/holdfast.json"):
            self._store = FilesystemStore.open(self._root, read_only=True)
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()


LOOPS: dict[str, Callable[[dict[str, Any]], None]] = {
    "kill": kill_loop,
    "neighbour": neighbour_loop,
    "count": count_operations,
    "enumerated": enumerated_loop,
}


def main() -> None:
    LOOPS[sys.argv[1]](json.loads(sys.argv[2]))


if __name__ == "__main__":
    main()
