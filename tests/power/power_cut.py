"""Cut the power under a real file system, again and again: `make power-cut` (needs root).

Processes commit to a store on a loop-mounted image and report what was acknowledged. The file system is
shut down without flushing its log, which is what a power cut leaves behind: only what had been synced. Then
the image is mounted again, the store reopened and checked. Some cuts come while the store is still being
opened after the cut before. With syncs turned off it must go red.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from pathlib import Path

from tests.machine.apart import checked
from tests.machine.images import MAKE, Image, make_image, workshop
from tests.machine.outcome import Harness, Order, Outcome, main
from tests.machine.registry import subject_of
from tests.machine.subjects import FILES, POSTGRES, ROLLBACK, SERVICE, SERVICE_SQLITE, WAL, Subject, Told

KINDS = (FILES, SERVICE, ROLLBACK, WAL, SERVICE_SQLITE, POSTGRES)
#: A store lives through so many cuts.
CUTS_PER_STORE = 5
ACKS_MAX = 40
#: One cut in so many comes without waiting for an acknowledgement: in the middle of recovery.
EARLY_EVERY = 5


def run(order: Order) -> Outcome:
    """So many cuts, ended by the first violation."""
    file_system, _, kind = order.store.partition(" ")
    outcome, rng, told = Outcome("power cuts", order), random.Random(order.seed), Told()
    with workshop() as folder:
        subject = subject_of(kind, folder)
        image = make_image(folder, file_system, subject.size_bytes)
        while outcome.goes_on:
            number = outcome.cases
            place = f"{image.mount_point}/store-{number // CUTS_PER_STORE}"
            if number % CUTS_PER_STORE == 0:
                outcome.acknowledged += told.count
                told = Told()
                _begin_anew(image, subject, place, lies=order.lies)
            is_early = number % CUTS_PER_STORE > 0 and rng.randrange(EARLY_EVERY) == 0
            acks = 0 if is_early else rng.randrange(1, ACKS_MAX)
            variant = order.seed + number // CUTS_PER_STORE
            _cut_once(image, subject, place, variant, acks, rng, told, lies=order.lies)
            outcome.cases += 1
            outcome.count("during recovery", int(is_early))
            outcome.blame(f"cut {number}", _check_after(image, subject, place, told))
    outcome.acknowledged += told.count
    return outcome


def _begin_anew(image: Image, subject: Subject, place: str, *, lies: bool) -> None:
    """Make room for the next store; its folder is there for good."""
    with image.mounted() as mounted:
        for old in mounted.glob("store-*"):
            shutil.rmtree(old)
        Path(place).mkdir()
        subject.prepare(place, lies=lies)


def _cut_once(
    image: Image,
    subject: Subject,
    place: str,
    variant: int,
    acks: int,
    rng: random.Random,
    told: Told,
    *,
    lies: bool,
) -> None:
    """Let the writers run for a while, cut the power, end the writers.

    What a writer hears after the cut counts for nothing: with the power it would be gone. (A sync of ext4
    that is under way when its journal is given up may even succeed.)
    """
    with image.mounted():
        writers = subject.writers(place, variant, lies=lies)
        for _ in range(acks):
            for writer in writers:
                writer.read_line()
        for _ in range(0 if acks else rng.randrange(600_000)):
            pass  # Not to wait for anything: only so that the cut comes at any instant of opening.
        for writer in writers:
            writer.read_what_is_there()
        image.cut_power()
        heard = [len(writer.lines) for writer in writers]
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
        subject.end(place)
        for writer in writers:
            writer.end()
    for writer, before in zip(writers, heard, strict=True):
        told.note_all(writer.lines[:before])
        told.note_all(line for line in writer.lines[before:] if line.startswith("pruning"))


def _check_after(image: Image, subject: Subject, place: str, told: Told) -> list[str]:
    """Mount again and open the store as the next process would."""
    with image.mounted():
        found = checked(subject.check, place, told)
        subject.end(place)
    return found


STORES = tuple(f"{file_system} {kind}" for file_system in MAKE for kind in KINDS)


def harness(store: str) -> Harness:
    """Say what one file system needs."""
    return Harness("power cuts", STORES, run, programs=(MAKE[store.split()[0]][0], "mount", "unshare"))


if __name__ == "__main__":
    chosen = next((word for word in sys.argv if word in STORES), STORES[0])
    sys.exit(main(harness(chosen), cases=300))
