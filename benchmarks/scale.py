"""Large states, many workflows, long workflows: what they cost beside small ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import Row, interleaved, micros, p50
from benchmarks.states import ChangingState
from holdfast import CheckpointService
from holdfast.domain.errors import StateSizeWarning

GROUP = "scale"
#: BENCHMARK_SCALE=0.1 runs a tenth of it.
SHARE = float(os.environ.get("BENCHMARK_SCALE", "1"))
WORKFLOWS = int(100_000 * SHARE)
CHECKPOINTS = int(100_000 * SHARE)
FEW_WORKFLOWS, FEW_CHECKPOINTS = 100, int(1_000 * min(1, SHARE * 10))
STATE_MEGABYTES = 100
ROUNDS = 200
#: So many changes lie between the newest checkpoint and its keyframe.
_CHANGES = 10
#: So many commits share a sync while a store is filled.
_TOGETHER = 500


def run(folder: Path) -> list[Row]:
    folder.mkdir()
    folder = folder.resolve()
    rows = []
    for name, url in _STORES.items():
        rows += _memory(name, url(folder / f"{name}-memory"))
    for name, url in _STORES.items():
        rows += _many_workflows(name, url(folder / f"{name}-few"), url(folder / f"{name}-many"))
        rows += _long_workflows(name, url(folder / f"{name}-short"), url(folder / f"{name}-long"))
    return rows


_STORES: dict[str, Callable[[Path], str]] = {
    "files": lambda path: f"file:{path}",
    "SQLite": lambda path: f"sqlite:{path}.db",
    "PostgreSQL": lambda path: f"postgresql+embedded:{path}",
}


def _memory(name: str, url: str) -> list[Row]:
    """Commit a large state in one process, and restore it in another."""
    rows = []
    for what in ("commit", "restore"):
        found = subprocess.run(
            [sys.executable, "-m", "benchmarks.large_state", what, url, str(STATE_MEGABYTES)],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        told = json.loads(found.stdout)
        ratio = told["peak_megabytes"] / STATE_MEGABYTES
        value = f"{told['peak_megabytes']:.0f} MB at most, the state itself {told['state_megabytes']:.0f} MB"
        what = f"{name}: {what} of {STATE_MEGABYTES} MB"
        rows.append(Row(GROUP, what, f"{value}: {ratio:.1f}x", "< 4x", ratio < 4))
    return rows


def _many_workflows(name: str, few: str, many: str) -> list[Row]:
    """Time a commit in a store of few workflows and in one of many, in turns."""
    with _filled(few, FEW_WORKFLOWS, 1) as small, _filled(many, WORKFLOWS, 1) as large:
        times = interleaved(ROUNDS, _committing(small), _committing(large), block=20)
    ratio = p50(times[1]) / p50(times[0])
    value = f"p50 {micros(p50(times[1]))}, among {FEW_WORKFLOWS} {micros(p50(times[0]))}: {ratio:.2f}x"
    what = f"{name}: commit among {WORKFLOWS:,} workflows"
    return [Row(GROUP, what, value, "<= 1.3x", ratio <= 1.3)]


def _long_workflows(name: str, short: str, long: str) -> list[Row]:
    """Time lists and restores of a workflow of few checkpoints and of one of many, in turns."""
    rows = []
    with _filled(short, 1, FEW_CHECKPOINTS) as few, _filled(long, 1, CHECKPOINTS) as many:
        for what, make in (("list the newest 100", _listing), ("restore the latest", _restoring)):
            times = interleaved(ROUNDS // 2, make(few), make(many))
            ratio = p50(times[1]) / p50(times[0])
            value = (
                f"p50 {micros(p50(times[1]))}, of {FEW_CHECKPOINTS:,} {micros(p50(times[0]))}: {ratio:.2f}x"
            )
            title = f"{name}: {what} of {CHECKPOINTS:,} checkpoints"
            rows.append(Row(GROUP, title, value, "<= 1.5x", ratio <= 1.5))
    return rows


@contextmanager
def _filled(url: str, workflows: int, checkpoints: int) -> Iterator[CheckpointService]:
    """Fill a store, and open it anew: what is measured is not what the process remembers."""
    warnings.simplefilter("ignore", StateSizeWarning)
    with holdfast.open(url) as service:
        for at in range(workflows * checkpoints):
            state = {"step": at // workflows, "note": f"note {at}"}
            service.create_checkpoint(f"WF-{at % workflows:06d}", state, wait=False)
            if at % _TOGETHER == 0:
                service.flush()
        _even(service)
    with holdfast.open(url) as service:
        yield service


def _even(service: CheckpointService) -> None:
    """Go on until the newest checkpoint lies so many changes after its keyframe: a restore reads them."""
    store = service._engine.kit.store
    for at in range(1_000):
        newest = service.create_checkpoint("WF-000000", {"even": at})
        entry = next(iter(store.entries("WF-000000", newest_first=True)))
        if newest.sequence - entry.group == _CHANGES:
            return


def _committing(service: CheckpointService) -> Callable[[], Any]:
    state = ChangingState("WF-000000", 20_000)
    return lambda: service.create_checkpoint("WF-000000", state.step())


def _listing(service: CheckpointService) -> Callable[[], Any]:
    return lambda: service.list_checkpoints("WF-000000", limit=100)


def _restoring(service: CheckpointService) -> Callable[[], Any]:
    return lambda: service.load_latest("WF-000000")
