"""No room: the last block or the last inode of a real file system is taken, and given back.

While there is none, commits are refused with an error of ours and nothing acknowledged is lost. When there is
room again, the same store can be written, by the process that was refused and by the next. A writer that
acknowledges first must be found out.
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.adapters.postgres.store import PostgresStore
from holdfast.domain.errors import CheckpointConflictError, CheckpointError
from tests.machine.apart import checked
from tests.machine.images import MEGABYTE, in_memory, make_image, workshop
from tests.machine.outcome import Harness, Order, Outcome, main
from tests.machine.scenarios import STORES as LOCAL
from tests.machine.scenarios import Scenario
from tests.machine.subjects import POSTGRES, Postgres, Told
from tests.process import children
from tests.process.child import Child, Report, must_stop, start

NAME = "full disks"
WAYS = ("tmpfs blocks", "tmpfs inodes", "ext4 blocks", "ext4 inodes")
STORES = (*LOCAL, POSTGRES)
SIZE_BYTES = {POSTGRES: 160 * MEGABYTE}
SIZE_BYTES_LOCAL = 24 * MEGABYTE
INODES, INODES_POSTGRES = 2000, 4000
#: So many commits are tried while there is no room, and after it was given back.
TRIES = 25
ROUNDS = 3
_CHUNK = b"\xa5" * 65536
#: A server that died for want of room needs a moment to come back.
PATIENCE_SECONDS = 30.0


def write(report: Report, stop: int, kind: str, folder: str, lies: bool) -> None:
    """Commit until told to stop, each time to a new workflow now and then; tell every refusal."""
    # Else one that nobody hears for a while fills the disk by itself, inodes first, and for good.
    report.stay_near()
    store: Any = None
    number = int(time.time() * 1000) % 10**9 * 1000
    while not must_stop(stop):
        number += 1
        # New workflows need new files: that is what runs out of inodes.
        workflow_id = f"WF-{number // 4}"
        try:
            store = store or _open(kind, folder)
            head = store.head(workflow_id)
            children.commit_next(store, workflow_id, head, 900, "w", report, early=lies)
            if number % 3 == 0:
                store.settle()
        except CheckpointConflictError as error:
            report.say("conflict", workflow_id, number, type(error).__name__)
        except CheckpointError as error:
            report.say("error", workflow_id, number, type(error).__name__)
            if number % 2:
                _let_go(store)
                store = None


def _open(kind: str, folder: str) -> Any:
    if kind == POSTGRES:
        return PostgresStore.open(Postgres(reconnect_seconds=1).url(folder))
    return Scenario(kind, folder, 0).open()


def _let_go(store: Any) -> None:
    with contextlib.suppress(CheckpointError):
        if store is not None:
            store.close()


@contextlib.contextmanager
def room(way: str, kind: str, folder: Path) -> Iterator[Path]:
    """Mount a small file system."""
    size = SIZE_BYTES.get(kind, SIZE_BYTES_LOCAL)
    inodes = INODES_POSTGRES if kind == POSTGRES else INODES
    if way.startswith("tmpfs"):
        with in_memory(folder / "mounted", size_bytes=size, inodes=inodes) as mounted:
            yield mounted
        return
    # With blocks smaller than pages SQLite gets only a part of its shared memory allocated, and on a full
    # disk its process ends by SIGBUS.
    options = ("-b", "4096", "-m", "0", "-N", str(inodes))
    with make_image(folder, "ext4", size, *options).mounted() as mounted:
        yield mounted


def fill(folder: Path, way: str, keep: int) -> Path:
    """Take every block, or every inode, but a few."""
    filler = folder / "filler"
    filler.mkdir()
    handle = os.open(filler / "bytes", os.O_CREAT | os.O_WRONLY)
    with contextlib.suppress(OSError):
        for number in range(10**6 if way.endswith("inodes") else 0):
            os.close(os.open(filler / str(number), os.O_CREAT | os.O_WRONLY))
    size = len(_CHUNK) if way.endswith("blocks") else 0
    while size:
        try:
            size = size if os.write(handle, _CHUNK[:size]) == size else size // 2
        except OSError:
            size //= 2
    if way.endswith("blocks"):
        os.ftruncate(handle, max(0, os.fstat(handle).st_size - keep * 4096))
    else:
        for path in list(filler.iterdir())[:keep]:
            path.unlink()
    os.close(handle)
    return filler


def give_back(filler: Path) -> None:
    for path in filler.iterdir():
        path.unlink()
    filler.rmdir()


def run(order: Order) -> Outcome:
    """Fill and free so many file systems under a writer, each a few times."""
    outcome, rng = Outcome(NAME, order), random.Random(order.seed)
    while outcome.goes_on:
        way = WAYS[(order.seed + outcome.cases) % len(WAYS)]
        with workshop() as folder, room(way, order.store, folder) as mounted:
            _try(outcome, rng, way, mounted)
        outcome.cases += 1
        outcome.count(way)
    return outcome


def _try(outcome: Outcome, rng: random.Random, way: str, mounted: Path) -> None:
    kind, place, told = outcome.order.store, mounted / "place", Told()
    place.mkdir()
    server = Postgres() if kind == POSTGRES else None
    if server is not None:
        server.prepare(str(place), lies=False)
    child = start(write, kind, str(place), outcome.order.lies)
    try:
        for _ in range(ROUNDS):
            _hear(child, "ack", rng.randrange(1, 12), outcome, way)
            filler = fill(mounted, way, rng.choice((0, 0, 1, 3, 9)))
            for _ in range(TRIES):
                child.read_line()
            give_back(filler)
            _hear(child, "ack", 3, outcome, f"{way}, with room again")
    finally:
        with contextlib.suppress(BrokenPipeError):
            child.stop()
        status = child.end()
    told.note_all(child.lines)
    found = [] if status == 0 else [f"the writer ended with {status}"]
    outcome.blame(f"case {outcome.cases}, {way}", [*found, *_look(kind, str(place), told)])
    if server is not None:
        server.end(str(place))
    outcome.acknowledged += told.count
    outcome.count("refused", told.errors)


def _hear(child: Child, word: str, count: int, outcome: Outcome, where: str) -> None:
    """Listen until something was said so often; give up after a while."""
    ends = time.monotonic() + PATIENCE_SECONDS
    said: list[str] = []
    while count:
        line = child.read_line()
        said.append(line or "")
        if line is None or time.monotonic() > ends:
            outcome.blame(where, [f"it can no longer be written: {said[-3:]}"])
            return
        count -= line.startswith(word)


def _look(kind: str, place: str, told: Told) -> list[str]:
    if kind == POSTGRES:
        return checked(Postgres().check, place, told)
    scenario = Scenario(kind, place, 0)
    return checked(scenario.check, told) or checked(scenario.go_on) or checked(scenario.check, told)


HARNESS = Harness(NAME, STORES, run, programs=("mkfs.ext4", "mount", "umount"))

if __name__ == "__main__":
    sys.exit(main(HARNESS, cases=20))
