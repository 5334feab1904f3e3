"""Timing, percentiles, disk usage, and the rows of the table."""

from __future__ import annotations

import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from holdfast.adapters.filesystem.disk import Disk


@dataclass(frozen=True, slots=True)
class Row:
    """One measured thing, the bar it is held to, and whether it held."""

    group: str
    what: str
    value: str
    bar: str = ""
    held: bool | None = None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class CountingDisk(Disk):
    """Counts syncs, and can make each one slower: the cost of a real disk on a fast machine."""

    def __init__(self, root: str, extra_seconds: float = 0.0) -> None:
        super().__init__(root)
        self.syncs = 0
        self.extra_seconds = extra_seconds

    def sync(self, handle: int) -> None:
        self.syncs += 1
        super().sync(handle)
        if self.extra_seconds:
            time.sleep(self.extra_seconds)


def resident_megabytes(name: str) -> float:
    """Answer how many megabytes the process has (`VmRSS`), or had at most (`VmHWM`).

    The kernel's other count, `ru_maxrss`, begins with what the process had that started this one.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split(f"{name}:")[1].split()[0]) / 1024


def timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def interleaved(
    rounds: int,
    *calls: Callable[[], Any],
    before: Callable[[], Any] | None = None,
    block: int = 1,
) -> list[list[float]]:
    """Time several calls in turns, so that what disturbs one disturbs all; `before` is not timed.

    Args:
        block: How often each call is made in a turn. Above 1 each meets warm caches, as in a loop of its own.
    """
    times: list[list[float]] = [[] for _ in calls]
    gc.collect()
    for _ in range(rounds // block):
        for index, call in enumerate(calls):
            for _ in range(block):
                if before is not None:
                    before()
                times[index].append(timed(call))
    return times


def p50(times: list[float]) -> float:
    return statistics.median(times)


def p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


def micros(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 0.01 else f"{seconds * 1e3:.1f} ms"


def disk_usage(root: Path) -> int:
    """Bytes as `du` counts them, folders included."""
    paths = [root, *root.rglob("*")]
    return sum(os.lstat(path).st_blocks * 512 for path in paths)


def machine() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count(),
        "python": sys.version.split()[0],
        "processor": _processor(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "")
