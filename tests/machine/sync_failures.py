"""A disk that fails under ext4 and then says that all is well: a sync fails, and the next one succeeds.

The device below the file system is served by a process of ours, which lets the next few writes that hold
data of commits fail. The kernel calls the pages clean, and whoever asks again is told OK. A store must not
believe that: what it acknowledges has to be there after the file system was mounted again. A disk whose
errors are not looked at must be found out.
"""

from __future__ import annotations

import os
import random
import sys
from contextlib import suppress
from pathlib import Path

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.sqlite import watching
from holdfast.domain.errors import CheckpointError
from tests.machine.apart import checked
from tests.machine.block_device import Entry, Page, read_log, served
from tests.machine.images import MEGABYTE, Image, make_image, workshop
from tests.machine.outcome import Harness, Order, Outcome, main
from tests.machine.scenarios import STORES, WORKFLOWS, Scenario
from tests.machine.subjects import FILES, Told, never_sync_sqlite
from tests.process import children
from tests.process.child import Child, Report, must_stop, start

NAME = "failed syncs"
IMAGE_BYTES = 48 * MEGABYTE
#: In every record of a commit.
MARK = b"agent_complete"
FAILURES_MAX = 4
AFTERWARDS = 8
MOVED_AFTER = 3


class DeafDisk(Disk):
    """Does not look whether a sync failed: the negative control."""

    def sync(self, handle: int) -> None:
        try:
            super().sync(handle)
        except OSError:
            return


def write(report: Report, stop: int, scenario: Scenario, lies: bool) -> None:
    """Commit until told to stop; an error is told, and the store opened again."""
    if lies and scenario.store != FILES:
        never_sync_sqlite()
    disk = DeafDisk(scenario.root) if lies and scenario.store == FILES else None
    # A log is moved into the file by a commit too, not only by settling.
    setattr(watching, "_COMMITS_MAX", MOVED_AFTER)  # noqa: B010
    store = None
    number = 0
    while not must_stop(stop):
        number += 1
        workflow_id = WORKFLOWS[number % len(WORKFLOWS)]
        try:
            store = store or scenario.open(disk)
            head = store.head(workflow_id)
            children.commit_next(store, workflow_id, head, 37 * number % 900, "w", report)
            if number % 5 == 0:
                store.settle()
        except CheckpointError as error:
            report.say("error", workflow_id, number, type(error).__name__)
            with suppress(CheckpointError):
                if store is not None:
                    store.close()
            store = None


def run(order: Order) -> Outcome:
    """Let writes fail under a writer so many times, each time on a new file system."""
    outcome, rng = Outcome(NAME, order), random.Random(order.seed)
    while outcome.goes_on:
        with workshop() as folder:
            _try(outcome, rng, folder)
    return outcome


def _try(outcome: Outcome, rng: random.Random, folder: Path) -> None:
    # Blocks as large as pages: a request that begins within one would be served in pieces.
    image = make_image(folder, "ext4", IMAGE_BYTES, "-b", "4096", "-J", "size=4")
    page, told = Page(), Told()
    with image.mounted() as mounted:
        (mounted / "place").mkdir()
    with served(image, folder, page, MARK) as (device, log):
        with device.mounted() as mounted:
            scenario = Scenario(outcome.order.store, str(mounted / "place"), 0)
            child = start(write, scenario, outcome.order.lies)
            _hear(child, rng.randrange(1, 20))
            page.let_fail(rng.randrange(1, FAILURES_MAX + 1))
            _hear_until(child, page)
            _hear(child, AFTERWARDS)
            page.let_fail(0)
            child.stop()
            status = child.end()
        told.note_all(child.lines)
        reached = read_log(log)
    found = [] if status == 0 else [f"the writer ended with {status}"]
    _make_anew(image, reached)
    outcome.blame(f"case {outcome.cases}", [*found, *_look(image, outcome.order.store, told)])
    outcome.cases += 1
    outcome.acknowledged += told.count
    outcome.count("writes failed", page.failed)
    outcome.count("errors told", told.errors)


def _hear(child: Child, lines: int) -> None:
    for _ in range(lines):
        if child.read_line() is None:
            return


def _hear_until(child: Child, page: Page) -> None:
    """Listen until a write has failed."""
    while not page.failed and child.read_line() is not None:
        continue


def _make_anew(image: Image, reached: list[Entry]) -> None:
    """Write what reached the device into a plain file: nothing is read from anybody's memory then."""
    with image.file.open("r+b") as file:
        for entry in reached:
            if not entry.is_flush:
                file.seek(entry.offset)
                file.write(entry.data)


def _look(device: Image, store: str, told: Told) -> list[str]:
    """Mount again and look."""
    with device.mounted() as mounted:
        scenario = Scenario(store, str(mounted / "place"), 0)
        if not told.count and not os.path.exists(scenario.root):
            return []
        return checked(scenario.check, told) or checked(scenario.go_on) or checked(scenario.check, told)


HARNESS = Harness(
    NAME, STORES, run, programs=("mkfs.ext4", "mount", "umount"), modules=("mfusepy",), paths=("/dev/fuse",)
)

if __name__ == "__main__":
    sys.exit(main(HARNESS, cases=50))
