"""Killed for want of memory: a writer in a memory cgroup commits while it takes more and more.

What it was told before is there, whole and equal. A writer that acknowledges first must be found out.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.adapters.postgres import server
from tests.machine.apart import checked
from tests.machine.images import MEGABYTE, workshop
from tests.machine.outcome import Harness, Order, Outcome, main
from tests.machine.scenarios import STORES as LOCAL
from tests.machine.scenarios import WORKFLOWS, Scenario
from tests.machine.subjects import FILES, POSTGRES, Told
from tests.process import children, postgres_children, sqlite_children
from tests.process.child import Report, start

NAME = "memory kills"
STORES = (*LOCAL, POSTGRES)
LIMIT_BYTES = 160 * MEGABYTE
KILLS_PER_STORE = 5
_V1, _V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup/unified")


@contextmanager
def limited() -> Iterator[Path]:
    """Make a group whose processes may have so much memory."""
    is_v1 = _V1.is_dir()
    root = _V1 if is_v1 else _V2 if _V2.is_dir() else _V1.parent
    group = root / f"holdfast-{os.getpid()}"
    group.mkdir()
    try:
        (group / ("memory.limit_in_bytes" if is_v1 else "memory.max")).write_text(str(LIMIT_BYTES))
        yield group
    finally:
        group.rmdir()


def write(report: Report, stop: int, url: str, scenario: Scenario, greed: int, lies: bool) -> None:
    """Wait to be let go, then commit and grow."""
    while not _is_let_go(stop):
        continue
    taken: list[bytearray] = []

    def grow() -> None:
        while True:
            taken.append(bytearray(b"\x01") * greed)

    store = _open(url, scenario)
    heads = {workflow_id: store.head(workflow_id) for workflow_id in WORKFLOWS}
    threading.Thread(target=grow, daemon=True).start()
    for count in range(10**6):
        for workflow_id in WORKFLOWS:
            head = heads[workflow_id]
            size = 37 * count % 900
            heads[workflow_id] = children.commit_next(store, workflow_id, head, size, "w", report, early=lies)


def _is_let_go(stop: int) -> bool:
    try:
        return bool(os.read(stop, 1))
    except BlockingIOError:
        return False


def _open(url: str, scenario: Scenario) -> Any:
    from holdfast.adapters.postgres.store import PostgresStore

    return PostgresStore.open(url) if url else scenario.open()


def run(order: Order) -> Outcome:
    """Let so many writers be killed; a store lives through several."""
    outcome, rng = Outcome(NAME, order), random.Random(order.seed)
    with limited() as group:
        while outcome.goes_on:
            with workshop() as folder:
                url = server.url(lock_seconds="30") if order.store == POSTGRES else ""
                _one_store(outcome, rng, group, url, Scenario(order.store, str(folder), 0))
    return outcome


def _one_store(outcome: Outcome, rng: random.Random, group: Path, url: str, scenario: Scenario) -> None:
    told = Told()
    for _ in range(KILLS_PER_STORE):
        if not outcome.goes_on:
            break
        greed = rng.choice((16, 64, 256, 1024)) * 1024
        child = start(write, url, scenario, greed, outcome.order.lies)
        (group / "cgroup.procs").write_text(str(child.pid))
        child.stop()
        status = child.end()
        told.note_all(child.lines)
        outcome.cases += 1
        found = [] if status == -signal.SIGKILL else [f"it ended with {status}, not by a kill"]
        outcome.blame(f"kill {outcome.cases}", [*found, *checked(_look, url, scenario, told)])
    outcome.acknowledged += told.count


def _look(url: str, scenario: Scenario, told: Told) -> list[str]:
    if url:
        return postgres_children.examine(url, told)
    mark = f"{scenario.root}/holdfast.json" if scenario.store == FILES else scenario.root
    if not told.count and not os.path.exists(mark):
        return []
    if scenario.store == FILES or told.count:
        return scenario.check(told)
    return sqlite_children._verify(scenario.sqlite_plan(), told)


HARNESS = Harness(NAME, STORES, run, paths=("/sys/fs/cgroup",))

if __name__ == "__main__":
    sys.exit(main(HARNESS, cases=50))
