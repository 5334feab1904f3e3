"""One writer: a durable checkpoint beside the least the machine can do."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from pathlib import Path

import holdfast
from benchmarks.holdfast_store import counted
from benchmarks.measure import Row, interleaved, micros, p50, p95, timed
from benchmarks.raw import RawAppend, RawReplace
from benchmarks.states import ChangingState, tasks_state
from holdfast.domain.errors import StateSizeWarning

ROUNDS = 600
SIZES = {"2 KB": 2_000, "20 KB": 20_000, "100 KB": 100_000, "1 MB": 1_000_000}


def run(folder: Path) -> list[Row]:
    warnings.simplefilter("ignore", StateSizeWarning)
    folder.mkdir()
    rows = [row for name, size in SIZES.items() for row in _size(folder / name, name, size)]
    return rows + _busy(folder / "busy") + _edits(folder / "edits") + _tasks(folder / "tasks")


def _size(folder: Path, name: str, size: int) -> list[Row]:
    folder.mkdir()
    service, disk = counted(folder)
    changing = ChangingState("bench", size)
    append, replace = RawAppend(folder / "raw"), RawReplace(folder)
    raw = os.urandom(size)
    service.create_checkpoint("bench", changing.step())
    before = disk.syncs
    rounds = ROUNDS if size < 500_000 else ROUNDS // 4
    ours, appended, replaced = interleaved(
        rounds,
        lambda: service.create_checkpoint("bench", changing.state),
        lambda: append(raw),
        lambda: replace(raw),
        before=changing.step,
        block=20,
    )
    syncs = (disk.syncs - before) / len(ours)
    append.close()
    replace.close()
    service.create_checkpoint("bench", changing.state)
    service.close()
    _read_back(folder, changing)
    ratio = p50(ours) / p50(appended)
    bar, held = ("<= 1.5x", ratio <= 1.5) if name == "20 KB" else ("", None)
    return [
        Row("commit", f"{name}: raw append + fdatasync", f"p50 {micros(p50(appended))}"),
        Row("commit", f"{name}: raw tmp + fsync + rename", f"p50 {micros(p50(replaced))}"),
        Row(
            "commit",
            f"{name}: Holdfast checkpoint",
            f"p50 {micros(p50(ours))}, p95 {micros(p95(ours))}, {ratio:.2f}x raw, {syncs:.2f} syncs each",
            bar,
            held,
        ),
    ]


def _read_back(folder: Path, changing: ChangingState) -> None:
    """No free lunch: what was written is there, equal, after reopening."""
    with holdfast.open(str(folder / "store"), read_only=True) as service:
        state = service.restore_checkpoint("bench@latest")
    if state.messages != changing.state.messages or state.context != changing.state.context:
        raise AssertionError("what was read back is not what was written")


def _busy(folder: Path) -> list[Row]:
    """Beside one thread that computes without pause."""
    folder.mkdir()
    service, _ = counted(folder)
    changing = ChangingState("bench", 20_000)
    service.create_checkpoint("bench", changing.step())
    stop = threading.Event()

    def compute() -> None:
        number = 0
        while not stop.is_set():
            for _ in range(1000):
                number = (number * 31 + 7) % 1_000_003

    thread = threading.Thread(target=compute)
    thread.start()
    (times,) = interleaved(
        150, lambda: service.create_checkpoint("bench", changing.state), before=changing.step
    )
    stop.set()
    thread.join()
    service.close()
    interval = sys.getswitchinterval()
    ratio = p50(times) / interval
    return [
        Row(
            "commit",
            "20 KB beside a CPU-bound thread",
            f"p50 {micros(p50(times))} = {ratio:.2f} switch intervals",
            "<= 3",
            ratio <= 3,
        )
    ]


def _edits(folder: Path) -> list[Row]:
    """Two edits in a large state beside two edits in a small one."""
    folder.mkdir()
    service, _ = counted(folder)
    large, small = ChangingState("large", 2_000_000), ChangingState("small", 20_000)
    service.create_checkpoint("large", large.step())
    service.create_checkpoint("small", small.step())
    big, little = interleaved(
        200,
        lambda: service.create_checkpoint("large", large.state),
        lambda: service.create_checkpoint("small", small.state),
        before=lambda: (large.step(), small.step()),
    )
    service.close()
    more = p50(big) - p50(little)
    return [
        Row(
            "commit",
            "two edits in 2 MB, more than in 20 KB",
            f"{micros(max(more, 0))} more ({micros(p50(big))} and {micros(p50(little))})",
            "<= 2 ms",
            more <= 0.002,
        )
    ]


def _tasks(folder: Path) -> list[Row]:
    folder.mkdir()
    service, _ = counted(folder)
    state = tasks_state("tasks", 1000)
    times = []
    for n in range(200):
        state.tasks[n] = {**state.tasks[n], "result": os.urandom(600).hex(), "status": "again"}
        state.current_step = n
        times.append(timed(lambda: service.create_checkpoint("tasks", state)))
    service.close()
    return [
        Row(
            "commit",
            "state of 1,000 tasks, one changed",
            f"p50 {micros(p50(times))}, p95 {micros(p95(times))}",
            "< 50 ms p95",
            p95(times) < 0.05,
        )
    ]
