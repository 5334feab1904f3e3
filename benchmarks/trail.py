"""What the trail, encryption and redaction add to a commit, and how long verifying takes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import CountingDisk, Row, interleaved, micros, p50
from benchmarks.states import ChangingState
from holdfast import CheckpointService
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.bootstrap import build_kit
from holdfast.config import Config

ROUNDS = 1200
ENTRIES = 1_000_000


def run(folder: Path) -> list[Row]:
    folder.mkdir()
    return [*_audit(folder / "audit"), *_verify(folder / "verify")]


class _Subject:
    """A service that makes checkpoints of 20 KB, and what each costs in processor time."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.disk = CountingDisk(str(folder))
        store = FilesystemStore.open("", disk=self.disk)
        config = Config(retain=False, redact=False).amended(settings)
        self.service = CheckpointService(build_kit(store, config))
        self.changing = ChangingState("bench", 20_000)
        self.cpu: list[float] = []
        self.step()

    def step(self) -> None:
        state = self.changing.step()
        before = time.thread_time()
        self.service.create_checkpoint("bench", state)
        self.cpu.append(time.thread_time() - before)


def _audit(folder: Path) -> list[Row]:
    folder.mkdir()
    bare, told = _Subject(folder / "bare", audit=False), _Subject(folder / "told", audit=True)
    syncs = [subject.disk.syncs for subject in (bare, told)]
    interleaved(ROUNDS, bare.step, told.step, block=20)
    more_syncs = (told.disk.syncs - syncs[1] - (bare.disk.syncs - syncs[0])) / ROUNDS
    more_cpu = p50(told.cpu) - p50(bare.cpu)
    for subject in (bare, told):
        subject.service.close()
    value = f"{micros(more_cpu)} of CPU and {more_syncs:.3f} syncs more than {micros(p50(bare.cpu))}"
    held = more_cpu <= 200e-6 and more_syncs < 0.01
    return [Row("trail", "audit entry on a 20 KB commit", value, "<= 200 us, no sync", held)]


_VERIFYING = """
import sys, time
from holdfast.domain.log_check import LogSource, Trust, verify_log
from benchmarks.measure import resident_megabytes
from benchmarks.trail import made_lines
began = time.perf_counter()
report = verify_log(LogSource(made_lines(sys.argv[1])), Trust(lambda *signed: False))
seconds = time.perf_counter() - began
assert report.entries == int(sys.argv[2]) and not report.fault_count, report
print(seconds, resident_megabytes("VmHWM"))
"""


def _verify(folder: Path) -> list[Row]:
    folder.mkdir()
    path = folder / "lines"
    make_lines(path, ENTRIES)
    answer = subprocess.run(
        [sys.executable, "-c", _VERIFYING, str(path), str(ENTRIES)],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, megabytes = map(float, answer.stdout.split())
    value = f"{seconds:.0f} s, {megabytes:.0f} MB at most"
    held = seconds < 60 and megabytes < 200
    return [Row("trail", f"verify {ENTRIES:,} entries", value, "< 60 s, < 200 MB", held)]


def make_lines(path: Path, count: int) -> None:
    """Write the trails of a hundred sessions, interleaved as a busy store would have them."""
    from holdfast.conformance.trailing import told
    from holdfast.domain.audit_entry import TrailHead
    from holdfast.domain.trail import chain

    heads: dict[str, TrailHead] = {}
    written = 0
    with path.open("wb") as file:
        while written < count:
            entry = told(written, f"session-{written % 100:03d}")
            for record in chain([entry], lambda name: heads.get(name) or TrailHead(name))[: count - written]:
                heads[record.head.session_id] = record.head
                file.write(record.data)
                written += 1


def made_lines(path: str) -> Iterator[bytes]:
    """Read them back, one at a time."""
    with open(path, "rb") as file:
        yield from file
