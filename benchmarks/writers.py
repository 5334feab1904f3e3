"""Many writers: commits that wait together share the sync."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from benchmarks.holdfast_store import counted
from benchmarks.measure import Row
from benchmarks.raw import RawAppend
from benchmarks.states import ChangingState
from holdfast import CheckpointService

SLOW_SECONDS = 0.002


def run(folder: Path) -> list[Row]:
    folder.mkdir()
    rows = []
    for writers, each in ((1, 400), (8, 100), (64, 25)):
        rows.append(_plain(folder / f"plain{writers}", writers, each))
    return [*rows, _slowed(folder / "slow")]


def together(service: CheckpointService, writers: int, each: int) -> tuple[float, float]:
    """Seconds and CPU seconds of `writers` threads that commit `each` times to a workflow of their own."""
    states = [ChangingState(f"w{n}", 20_000, seed=n) for n in range(writers)]
    for n, changing in enumerate(states):
        service.create_checkpoint(f"w{n}", changing.step())
    start = threading.Barrier(writers + 1)

    def work(n: int) -> None:
        start.wait()
        for _ in range(each):
            service.create_checkpoint(f"w{n}", states[n].step())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(writers)]
    for thread in threads:
        thread.start()
    start.wait()
    began, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.join()
    return time.perf_counter() - began, time.process_time() - cpu


def _plain(folder: Path, writers: int, each: int) -> Row:
    folder.mkdir()
    service, disk = counted(folder)
    before = disk.syncs
    seconds, cpu = together(service, writers, each)
    commits = writers * each
    syncs = (disk.syncs - before) / commits
    service.close()
    cost = cpu / commits * 1e6
    told = f"{commits / seconds:.0f}/s, {cost:.0f} us CPU, {syncs:.2f} syncs each"
    # What the states themselves cost to change is in the CPU figure too.
    bar, held = ("<= 250 us CPU", cost <= 250) if writers == 64 else ("", None)
    return Row("writers", f"{writers} writers, 20 KB", told, bar, held)


def _slowed(folder: Path) -> Row:
    """Where a sync costs 2 ms and more: 64 writers beside a loop of raw syncs on the same disk."""
    folder.mkdir()
    service, disk = counted(folder, SLOW_SECONDS)
    seconds, _ = together(service, 64, 25)
    rate = 64 * 25 / seconds
    disk.extra_seconds = 0
    service.close()
    raw = RawAppend(folder / "raw")
    began = time.perf_counter()
    for _ in range(200):
        raw(bytes(20_000))
        time.sleep(SLOW_SECONDS)
    raw_rate = 200 / (time.perf_counter() - began)
    raw.close()
    ratio = rate / raw_rate
    return Row(
        "writers",
        "64 writers, each sync slowed by 2 ms",
        f"{rate:.0f}/s, {ratio:.1f}x a raw loop ({raw_rate:.0f}/s)",
        ">= 8x",
        ratio >= 8,
    )
