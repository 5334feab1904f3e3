"""Every state that a power cut may leave on a block device, below a real ext4.

A scenario runs once on an image that a process of ours serves and whose writes and flushes it logs. Then
the image is made again as it may have been at any moment: what was flushed is there; of what came after the
last flush, everything (a prefix of the log), some of it, or some of it torn between sectors. Each state is
mounted, which lets ext4 replay its own journal, and the store is opened and checked against what was
acknowledged by then. Without syncs it must go red.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tests.machine.apart import checked
from tests.machine.block_device import Entry, Page, read_log, served
from tests.machine.images import MEGABYTE, Image, make_image, workshop
from tests.machine.outcome import Harness, Order, Outcome, main
from tests.machine.scenarios import STORES, Scenario
from tests.machine.subjects import FILES, Told
from tests.process.child import Report, start

IMAGE_BYTES = 24 * MEGABYTE
#: What disks of today write as a whole; ext4 itself does not live through less, in its superblock.
SECTOR_BYTES = 4096
COMMITS = 34
STATES_AT_ONCE = 10
NAME = "block states"
WAYS = ("prefix", "subset", "torn")


class NumberedReport(Report):
    """Ends each line with how far the log of the device was when it was said."""

    def __init__(self, report: Report, page: Page) -> None:
        self._report, self._page = report, page

    def say(self, word: str, workflow_id: str, number: int, rest: str = "") -> None:
        self._report.say(word, workflow_id, number, f"{rest or '-'} {self._page.count}")


@dataclass(frozen=True, slots=True)
class Recorded:
    """A scenario that ran: what the device held before, what reached it, and what was told when."""

    before: bytes
    log: list[Entry]
    lines: list[tuple[int, str]]

    def told_at(self, count: int) -> Told:
        """Give what had been acknowledged when the log had so many entries."""
        told = Told()
        told.note_all(line for at, line in self.lines if at <= count)
        return told


def record(folder: Path, order: Order) -> Recorded:
    """Run a scenario on a device that logs."""
    image, page = make_image(folder, "ext4", IMAGE_BYTES, "-J", "size=4"), Page()
    with image.mounted() as mounted:
        (mounted / "place").mkdir()
    before = image.file.read_bytes()
    with served(image, folder, page) as (device, log_path):
        with device.mounted() as mounted:
            pad_bytes = 37 + 2 * order.seed
            scenario = Scenario(order.store, str(mounted / "place"), COMMITS, pad_bytes=pad_bytes)
            child = start(_play, scenario, page, order.lies)
            status = child.end()
            if status:
                raise RuntimeError(f"the scenario ended with {status}")
        log = read_log(log_path)
    lines = [(int(at), line) for line, _, at in (line.rpartition(" ") for line in child.lines)]
    return Recorded(before, log, lines)


def _play(report: Report, _: int, scenario: Scenario, page: Page, lies: bool) -> None:
    scenario.play(NumberedReport(report, page), lies=lies)


def states(recorded: Recorded, chosen: Sequence[int], rng: random.Random) -> Iterator[tuple[int, str, bytes]]:
    """Make the image as it may have been at each of the moments, which rise."""
    settled, flushed, done = bytearray(recorded.before), 0, 0
    for count in chosen:
        flushed = next((n for n in range(count, flushed, -1) if recorded.log[n - 1].is_flush), flushed)
        for entry in recorded.log[done:flushed]:
            _apply(settled, entry)
        done = max(done, flushed)
        way = rng.choice(WAYS)
        image = bytearray(settled)
        for entry in _kept(recorded.log[flushed:count], way, rng):
            _apply(image, entry)
        yield count, way, bytes(image)


def _apply(image: bytearray, entry: Entry) -> None:
    if not entry.is_flush:
        image[entry.offset : entry.offset + len(entry.data)] = entry.data


def _kept(pending: list[Entry], way: str, rng: random.Random) -> Iterator[Entry]:
    """Choose what of the unflushed writes reached the disk."""
    for entry in pending:
        if way == "prefix" or rng.random() < 0.5:
            yield entry
        elif way == "torn" and (cuts := _cuts(entry)):
            at = rng.choice(cuts)
            if rng.random() < 0.5:
                yield replace(entry, data=entry.data[:at])
            else:
                yield Entry(entry.offset + at, entry.data[at:])


def _cuts(entry: Entry) -> range:
    """Say where a write may be torn."""
    return range(-entry.offset % SECTOR_BYTES or SECTOR_BYTES, len(entry.data), SECTOR_BYTES)


def run(order: Order) -> Outcome:
    """Check so many states of one scenario, spread over its whole log."""
    outcome, rng = Outcome(NAME, order), random.Random(order.seed)
    with workshop() as folder:
        recorded = record(folder, order)
        image = Image(folder / "state", folder / "mounted")
        while outcome.goes_on:
            # Few at a time, each time from the whole log: whoever stops early has looked everywhere.
            moments = sorted(rng.choices(range(1, len(recorded.log) + 1), k=STATES_AT_ONCE))
            _pass_through(outcome, recorded, moments, rng, image)
        outcome.acknowledged = recorded.told_at(len(recorded.log)).count
        outcome.counts["log entries"] = len(recorded.log)
    return outcome


def _pass_through(
    outcome: Outcome, recorded: Recorded, moments: list[int], rng: random.Random, image: Image
) -> None:
    for count, way, data in states(recorded, moments, rng):
        if not outcome.goes_on:
            return
        image.file.write_bytes(data)
        told = recorded.told_at(count)
        outcome.blame(f"{way} of {count} entries", _look(image, outcome.order.store, told))
        outcome.cases += 1
        outcome.count(way)


def _look(image: Image, store: str, told: Told) -> list[str]:
    with image.mounted() as mounted:
        scenario = Scenario(store, str(mounted / "place"), COMMITS)
        mark = f"{scenario.root}/holdfast.json" if store == FILES else scenario.root
        if not told.count and not (os.path.exists(mark) and os.path.getsize(mark)):
            return []
        return checked(scenario.check, told)


HARNESS = Harness(
    NAME, STORES, run, programs=("mkfs.ext4", "mount", "umount"), modules=("mfusepy",), paths=("/dev/fuse",)
)

if __name__ == "__main__":
    sys.exit(main(HARNESS, cases=500))
