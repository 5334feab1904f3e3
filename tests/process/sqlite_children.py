"""Processes on one SQLite file: run as `python -m tests.process.sqlite_children NAME JSON`."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.adapters.sql.migrations import Migration, migrate, read_migrations
from holdfast.adapters.sqlite import driver as drivers
from holdfast.adapters.sqlite import files
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import in_threads
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointError,
    CheckpointReadError,
    PermissionDeniedError,
    StoreReadOnlyError,
)
from holdfast.domain.record import Head
from tests.process import commits, telling
from tests.process.child import Child, Report, must_stop, start
from tests.process.children import KEPT_GROUPS, commit_next
from tests.process.commits import Acknowledged

DRIVERS = {"sqlite3": drivers.through_sqlite3, "apsw": drivers.through_apsw}
COMMITS_PER_OPENING = 7
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Plan:
    """What a writer does until it is killed or told to stop."""

    path: str
    driver: str
    journal_mode: str
    workflows: tuple[str, ...] = ("WF-0",)
    keeps_house: bool = False
    closes: bool = False
    #: The lies of the negative controls.
    acknowledges_first: bool = False
    tells_apart: bool = False


class TellingStore(telling.Telling, SqliteStore):
    """Whatever is done is told in trails, together with it."""


def open_store(plan: Plan, **options: Any) -> TellingStore:
    store = TellingStore.open(
        plan.path, driver=DRIVERS[plan.driver](), journal_mode=plan.journal_mode, **options
    )
    store.tells_apart = plan.tells_apart
    return store


def check_store(store: SqliteStore, told: Acknowledged) -> list[str]:
    """Violations in the whole store, trails included."""
    return [*commits.check_store(store, told), *telling.check_trails(store)]


def write_until_killed(report: Report, stop: int, plan: Plan) -> None:
    """Commit to each workflow in a thread of its own, telling about each commit once it is acknowledged."""
    store = open_store(plan)
    in_threads([partial(_write, plan, store, workflow_id, report, stop) for workflow_id in plan.workflows])
    store.close()


def _write(plan: Plan, store: SqliteStore, workflow_id: str, report: Report, stop: int) -> None:
    rng = random.Random(workflow_id)
    head = store.head(workflow_id)
    while not must_stop(stop):
        early, size = plan.acknowledges_first, rng.randrange(6000)
        head = commit_next(store, workflow_id, head, size, "w", report, early=early)
        if plan.keeps_house:
            _keep_house(store, workflow_id, head, report)
        if plan.closes and head.sequence % COMMITS_PER_OPENING == 0:
            store.close()
            store = open_store(plan)


def _keep_house(store: SqliteStore, workflow_id: str, head: Head, report: Report) -> None:
    """A keyframe at the start of each group, a prune that keeps the last groups, and space given back."""
    group = commits.group_of(head.sequence)
    if head.sequence != group:
        return
    store.put_keyframe(workflow_id, commits.make_keyframe(group))
    report.say("keyframe", workflow_id, group)
    store.commit([telling.erasure(workflow_id, store.trail_head(telling.session_of(workflow_id)).seq)])
    oldest_kept = group - KEPT_GROUPS * commits.GROUP_SIZE
    if oldest_kept > 1:
        report.say("pruning", workflow_id, oldest_kept)
        store.remove(workflow_id, commits.prune_through(oldest_kept))
        report.say("pruned", workflow_id, oldest_kept)
        store.settle()


# -- kill -9 ---------------------------------------------------------------------------------------


def kill(options: dict[str, Any]) -> dict[str, Any]:
    """Start a writer, kill it at some moment, open, check; the file lives through several rounds."""
    rng = random.Random(options["seed"])
    told, plan, acknowledged, violations = Acknowledged(), None, 0, []
    for number in range(options["rounds"]):
        if number % options["rounds_per_store"] == 0:
            acknowledged += told.count
            told, plan = Acknowledged(), Plan(f"{options['folder']}/{number}.db", **options["plan"])
        _kill_one(plan, rng, told)
        violations = [f"round {number}: {text}" for text in _verify(plan, told)]
        if violations:
            break
    return {"acknowledged": acknowledged + told.count, "violations": violations[:10]}


def _kill_one(plan: Plan, rng: random.Random, told: Acknowledged) -> None:
    child = start(write_until_killed, plan)
    for _ in range(rng.randrange(1, 30)):
        if child.read_line() is None:
            break
    for _ in range(rng.randrange(20_000)):
        pass  # Not to wait for anything: only so that death comes at any instant.
    child.kill()
    if child.end() != -signal.SIGKILL:
        told.violations.append("the writer ended by itself")
    for line in child.lines:
        told.note(line)


def _verify(plan: Plan, told: Acknowledged) -> list[str]:
    """Look as a reader that may not write does, then as the next writer."""
    found = []
    for is_reader in (True, False):
        try:
            store = open_store(plan, read_only=True) if is_reader else open_store(plan)
            found += check_store(store, told)
            marks = [] if is_reader else telling.erased_marks(store)
            store.close()
            found += [f"{mark!r} was erased and is still there" for mark in marks if is_in_files(plan, mark)]
        except CheckpointError as error:
            found.append(f"the store cannot be used: {error}")
    return found


def is_in_files(plan: Plan, mark: bytes) -> bool:
    """Look into every byte of the database and of what lies beside it."""
    return any(mark in path.read_bytes() for path in Path(plan.path).parent.glob(f"{Path(plan.path).name}*"))


# -- many at once ----------------------------------------------------------------------------------


def crowd(options: dict[str, Any]) -> dict[str, Any]:
    """Processes with threads, each with its own opening, all writing at once."""
    plan = Plan(options["path"], **options["plan"])
    children = [start(_compete_in_threads, number, plan, options) for number in range(options["processes"])]
    told, violations = _heard(children)
    violations += check_store(store := open_store(plan), told)
    total = sum(store.head(workflow_id).sequence for workflow_id in store.workflows())
    store.close()
    wanted = options["processes"] * options["threads"] * options["commits"]
    if not total == told.count == wanted:
        violations.append(f"{total} commits are there, {told.count} acknowledged, {wanted} wanted")
    lines = [line for child in children for line in child.lines]
    conflicts = sum(line.startswith("conflict") for line in lines)
    return {"acknowledged": told.count, "conflicts": conflicts, "violations": violations[:10]}


def _compete_in_threads(report: Report, _: int, number: int, plan: Plan, options: dict[str, Any]) -> None:
    store = open_store(plan)

    def write(thread: int) -> None:
        workflow_id = "WF-shared" if options["shared"] else f"WF-{number}-{thread}"
        _compete(store, workflow_id, options["commits"], f"{number}.{thread}", report)

    in_threads([partial(write, thread) for thread in range(options["threads"])])
    store.close()


def _compete(store: SqliteStore, workflow_id: str, count: int, writer: str, report: Report) -> None:
    """Commit until `count` of ours are in; a lost race is read again and tried again."""
    done = 0
    while done < count:
        commit = commits.make_commit(store.head(workflow_id), workflow_id, writer=writer)
        (outcome,) = store.commit([commit])
        if isinstance(outcome, CheckpointConflictError):
            report.say("conflict", workflow_id, 0)
        elif outcome is not None:
            raise outcome
        else:
            report.say("ack", workflow_id, commit.head.sequence, commit.head.checksum)
            done += 1


def _heard(children: list[Child]) -> tuple[Acknowledged, list[str]]:
    """Wait for the children and take in what they were told."""
    told, violations = Acknowledged(), []
    for number, child in enumerate(children):
        if child.end() != 0:
            violations.append(f"process {number} failed")
        for line in child.lines:
            told.note(line)
    return told, violations


# -- opening and migrating at once -----------------------------------------------------------------


def openers(options: dict[str, Any]) -> list[str]:
    """Open a file where there is none in several processes at once; then each commits."""
    violations = []
    for number in range(options["rounds"]):
        plan = Plan(f"{options['folder']}/{number}.db", **options["plan"])
        reading, writing = os.pipe()
        children = [start(_open_and_commit, plan, reading, f"WF-{who}") for who in range(4)]
        os.write(writing, b"." * len(children))
        told, failed = _heard(children)
        store = open_store(plan)
        versions = [version for version, *_ in store._database.applied()]
        if versions != list(range(1, len(versions) + 1)) or told.count != 3 * len(children):
            failed.append(f"{told.count} commits on the schema {versions}")
        violations += [f"round {number}: {text}" for text in (*failed, *check_store(store, told))]
        store.close()
        os.close(reading)
        os.close(writing)
    return violations[:10]


def _open_and_commit(report: Report, _: int, plan: Plan, gate: int, workflow_id: str) -> None:
    os.read(gate, 1)
    store = open_store(plan)
    _compete(store, workflow_id, 3, workflow_id, report)
    store.close()


def migrators(options: dict[str, Any]) -> list[str]:
    """Apply slow migrations in several processes at once: each step is made by one of them."""
    steps = [Migration(n, f"step_{n}", _slow_step(n)) for n in range(1, 4)]
    children = [start(_migrate, options["path"], options["driver"], steps) for _ in range(4)]
    violations = ["a process failed" for child in children if child.end() != 0]
    database = _database(options["path"], options["driver"])
    rows = [row[0] for row in database.rows("select step from log order by step")]
    applied = [row[0] for row in database.applied()]
    database.close()
    return violations if rows == applied == [1, 2, 3] else [*violations, f"{rows} after {applied}"]


def _slow_step(number: int) -> str:
    table = "create table log (step integer);" if number == 1 else ""
    work = f"create table t{number} (n integer);\ninsert into t{number} values " + ", ".join(["(1)"] * 2000)
    return f"{table}\n{work};\ninsert into log values ({number});\n"


def _migrate(report: Report, _: int, path: str, driver: str, steps: list[Migration]) -> None:
    database = _database(path, driver)
    migrate(database, steps, now=datetime.now(UTC), place=path)
    database.close()


def _database(path: str, driver: str) -> SqliteDatabase:
    files.create(path)
    return SqliteDatabase(path, DRIVERS[driver](), read_only=False, busy_seconds=30)


# -- forks -----------------------------------------------------------------------------------------


class Memory:
    """Stands where a report's pipe would be, in the process itself."""

    def __init__(self, told: Acknowledged) -> None:
        self._told = told

    def say(self, word: str, workflow_id: str, number: int, rest: str = "") -> None:
        self._told.note(f"{word} {workflow_id} {number} {rest}")


def forks(options: dict[str, Any]) -> list[str]:
    """Fork again and again while threads of the parent commit and read; every child commits too."""
    plan = Plan(options["path"], **options["plan"])
    store, stop, told = open_store(plan), threading.Event(), Acknowledged()
    lines: list[str] = []

    def write(workflow_id: str) -> None:
        head = store.head(workflow_id)
        while not stop.is_set():
            head = commit_next(store, workflow_id, head, 300, "p", Memory(told))
            store.head(workflow_id)

    def fork() -> None:
        for number in range(options["forks"]):
            child = start(_commit_three, store, f"WF-c{number}", number % 2 == 0)
            if child.end() != 0:
                told.violations.append(f"child {number} failed")
            lines.extend(child.lines)
        stop.set()

    in_threads([partial(write, "WF-p0"), partial(write, "WF-p1"), fork])
    for line in lines:
        told.note(line)
    if len(lines) != 3 * options["forks"]:
        told.violations.append(f"{len(lines)} commits by {options['forks']} children")
    store.close()
    return _verify(plan, told)


def _commit_three(report: Report, _: int, store: SqliteStore, workflow_id: str, closes: bool) -> None:
    head = store.head(workflow_id)
    for _ in range(3):
        head = commit_next(store, workflow_id, head, 300, "c", report)
    if closes:
        store.close()


# -- limits and rights -----------------------------------------------------------------------------


def full(options: dict[str, Any]) -> dict[str, Any]:
    """Commit until the file may not grow any more; then again with more room."""
    plan, told, refusals = Plan(options["path"], **options["plan"]), Acknowledged(), set()
    store = open_store(plan)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (options["limit_bytes"], hard))
    head = store.head("WF-0")
    for _ in range(options["attempts"]):
        try:
            head = commit_next(store, "WF-0", head, 3000, "w", Memory(told))
        except CheckpointError as error:
            refusals.add(type(error).__name__)
    held = told.count
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    commit_next(store, "WF-0", head, 3000, "w", Memory(told))
    store.close()
    return {"held": held, "refusals": sorted(refusals), "violations": _verify(plan, told)}


def as_nobody(options: dict[str, Any]) -> list[str]:
    """Drop every right, then read everything and try to write."""
    # Afterwards not even modules may be read.
    read_migrations("holdfast.adapters.sqlite")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    told = Acknowledged()
    told.commits = {"WF-0": {int(sequence): checksum for sequence, checksum in options["told"].items()}}
    plan = Plan(options["path"], **options["plan"])
    reader = open_store(plan, read_only=True)
    found = check_store(reader, told)
    with suppress(StoreReadOnlyError):
        reader.commit([])
        found.append("a reader may write")
    reader.close()
    try:
        writer = open_store(plan)
        writer.commit([commits.make_commit(writer.head("WF-0"), "WF-0")])
    except (PermissionDeniedError, CheckpointReadError):
        return found
    return [*found, "opening to write was not refused"]


LOOPS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "kill": kill,
    "crowd": crowd,
    "openers": openers,
    "migrators": migrators,
    "forks": forks,
    "full": full,
    "as_nobody": as_nobody,
}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(LOOPS[sys.argv[1]](json.loads(sys.argv[2]))))
