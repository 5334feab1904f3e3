"""Cut the power under a real file system, again and again: `make power-cut` (needs root).

A writer commits to a store on a loop-mounted image and reports what was acknowledged. The file system is
shut down without flushing its log, which is what a power cut leaves behind: only what had been synced. Then
the image is mounted again, the store reopened and checked. With syncs turned off it must go red.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.store import FilesystemStore
from tests.process.child import Report, start
from tests.process.children import Plan, check_store, write_until_killed
from tests.process.commits import Acknowledged

ROOT = Path(__file__).parent.parent.parent

EVIDENCE = ROOT / "build" / "evidence" / "power_cut.json"
IMAGE_BYTES = 96 * 1024 * 1024
XFS_IMAGE_BYTES = 320 * 1024 * 1024
#: _IOR('X', 125, u32): stop the file system at once; 2: without writing its log.
SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
JOURNAL_BYTES = 65536

MAKE = {
    "ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
}
#: What the processes that write at once do; a store lives through several cuts with one of these.
PLANS: tuple[tuple[dict[str, Any], ...], ...] = (
    ({},),
    ({"workflows": ("WF-0", "WF-1", "WF-2", "WF-3")},),
    ({"workflows": ("WF-0", "WF-1"), "keyframes": True, "prunes": True, "erases": True},),
    ({"workflows": ("WF-0",)}, {"workflows": ("WF-1", "WF-2")}),
)
CUTS_PER_STORE = 5


@dataclass(slots=True)
class Tally:
    """What one series of cuts came to."""

    file_system: str
    cuts: int = 0
    acknowledged: int = 0
    violations: list[str] = field(default_factory=list)


class UnsyncedDisk(Disk):
    """Never syncs the journal, though everything else: the negative control."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._rings: set[int] = set()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        handle = super().open(path, write=write, create=create)
        self._rings.discard(handle)
        if path.startswith("journal/ring") and not path.endswith(".tmp"):
            self._rings.add(handle)
        return handle

    def sync(self, handle: int) -> None:
        if handle not in self._rings:
            super().sync(handle)


class Image:
    """A file system in a file, mounted through a loop device that goes with the mount."""

    def __init__(self, folder: Path, file_system: str) -> None:
        self.file_system = file_system
        self.mount_point = folder / "mounted"
        self._file = folder / "image"
        self.mount_point.mkdir()
        with self._file.open("wb") as image:
            image.truncate(XFS_IMAGE_BYTES if file_system == "xfs" else IMAGE_BYTES)
        run([*MAKE[file_system], str(self._file)])

    @contextlib.contextmanager
    def mounted(self) -> Iterator[Path]:
        run(["mount", "-o", "loop", str(self._file), str(self.mount_point)])
        try:
            yield self.mount_point
        finally:
            run(["umount", str(self.mount_point)])

    def cut_power(self) -> None:
        handle = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(handle)


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def cut_once(image: Image, plans: list[Plan], told: Acknowledged, acks: int, *, syncs: bool) -> None:
    """Let the writers run for a while, cut the power, end the writers."""
    with image.mounted():
        disk = None if syncs else UnsyncedDisk(plans[0].root)
        children = [start(_write, plan, disk) for plan in plans]
        for _ in range(acks):
            for child in children:
                child.read_line()
        image.cut_power()
        for child in children:
            child.kill()
            child.end()
    for line in (line for child in children for line in child.lines):
        told.note(line)


def _write(report: Report, stop: int, plan: Plan, disk: Disk | None) -> None:
    # After the cut every call fails; what the writer says about that is of no interest.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    write_until_killed(report, stop, plan, disk)


def check_after(image: Image, root: str, told: Acknowledged) -> list[str]:
    """Mount again and open the store as the next process would."""
    with image.mounted():
        if not os.path.exists(f"{root}/holdfast.json"):
            return [f"the store is gone with {told.count} acknowledged commits"] if told.count else []
        try:
            store = FilesystemStore.open(root, journal_bytes=JOURNAL_BYTES, background=False)
        except Exception as error:
            return [f"the store cannot be opened: {error!r}"]
        found = check_store(store, told)
        store.close()
        return found


def series(file_system: str, cuts: int, seed: int, *, syncs: bool = True) -> Tally:
    """So many cuts, ended by the first violation; a store lives through a few of them."""
    tally, rng, told = Tally(file_system), random.Random(seed), Acknowledged()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-power-"))
    try:
        image = Image(folder, file_system)
        for number in range(cuts):
            store, again = divmod(number, CUTS_PER_STORE)
            if not again:
                tally.acknowledged += told.count
                told = Acknowledged()
                _empty(image)
            root = f"{image.mount_point}/store-{store}"
            plans = [Plan(root, journal_bytes=JOURNAL_BYTES, **plan) for plan in PLANS[store % len(PLANS)]]
            cut_once(image, plans, told, rng.randrange(1, 120), syncs=syncs)
            tally.cuts += 1
            found = check_after(image, root, told)
            tally.violations += [f"{file_system}, seed {seed}, cut {number}: {text[:300]}" for text in found]
            if found:
                break
        tally.acknowledged += told.count
    finally:
        shutil.rmtree(folder)
    return tally


def _empty(image: Image) -> None:
    """Make room for the next store."""
    with image.mounted() as mounted:
        for old in mounted.glob("store-*"):
            shutil.rmtree(old)


def keep_evidence(path: Path, tallies: list[Tally], control: Tally, seconds: float) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {
        "name": "power_cut",
        "counts": {
            "cuts": sum(tally.cuts for tally in tallies),
            "acknowledged": sum(tally.acknowledged for tally in tallies),
            "by_file_system": {tally.file_system: tally.cuts for tally in tallies},
            "seconds": round(seconds, 1),
        },
        "control": {"cuts": control.cuts, "red": bool(control.violations), "found": control.violations[:3]},
        "violations": [violation for tally in tallies for violation in tally.violations],
    }
    path.write_text(json.dumps(result, indent=2) + "\n")
    sys.stdout.write(json.dumps(result, indent=2) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cuts", type=int, default=300, help="how many per file system")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--evidence", type=Path, default=EVIDENCE, help="where the result is written")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.stderr.write("Only root may mount a file system: sudo make power-cut\n")
        return 2
    started = time.monotonic()
    kinds = [kind for kind, command in MAKE.items() if shutil.which(command[0])]
    control = series("ext4", 20, options.seed, syncs=False)
    tallies = [series(kind, options.cuts, options.seed) for kind in kinds]
    keep_evidence(options.evidence, tallies, control, time.monotonic() - started)
    if not control.violations:
        sys.stderr.write("The control without syncs found nothing: these cuts prove nothing.\n")
        return 1
    return 1 if any(tally.violations for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
