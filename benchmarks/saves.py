"""Saving a workflow of a thousand tasks on each store: how long it takes, and how much is written."""

from __future__ import annotations

import os
import statistics
import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import holdfast
from benchmarks.measure import Row, p50, p95, timed
from benchmarks.states import tasks_state
from holdfast.bootstrap import open_store
from holdfast.config import Config
from holdfast.domain.errors import StateSizeWarning

TASKS = 1_000
SAVES = 200
P95_BAR_SECONDS = 0.05
SIZE_BAR_BYTES = 100_000


def measure(new_urls: Callable[[], Mapping[str, str]]) -> dict[str, dict[str, Any]]:
    warnings.simplefilter("ignore", StateSizeWarning)
    return {store: _measured(url) for store, url in new_urls().items()}


def _measured(url: str) -> dict[str, Any]:
    state = tasks_state("tasks", TASKS)
    times = []
    with holdfast.open(url, retain=False) as service:
        service.create_checkpoint("tasks", state)
        for number in range(SAVES):
            result = os.urandom(600).hex()
            state.tasks[number] = {**state.tasks[number], "result": result, "status": "again"}
            state.current_step = number
            times.append(timed(lambda: service.create_checkpoint("tasks", state)))
        if service.restore_checkpoint("tasks@latest").tasks != state.tasks:
            raise AssertionError("what was restored is another state")
    return {"p50_seconds": p50(times), "p95_seconds": p95(times), **_sizes(url)}


def _sizes(url: str) -> dict[str, Any]:
    """Tell the bytes as they are stored: a change in most checkpoints, a complete state in few."""
    with closing(open_store(Config(store=url), read_only=True)) as store:
        changes = [entry.length for entry in store.entries("tasks")]
        keyframes = [keyframe.length for keyframe in store.keyframes("tasks")]
    return {"change_bytes": statistics.median(changes), "complete_bytes": max(keyframes)}


def rows(told: Mapping[str, dict[str, Any]]) -> list[Row]:
    return [row for store, one in told.items() for row in (_time(store, one), _size(store, one))]


def _time(store: str, one: dict[str, Any]) -> Row:
    told = f"p50 {one['p50_seconds'] * 1e3:.1f} ms, p95 {one['p95_seconds'] * 1e3:.1f} ms"
    held = one["p95_seconds"] < P95_BAR_SECONDS
    return Row("execution", f"{store}: save of 1,000 tasks", told, "< 50 ms p95", held)


def _size(store: str, one: dict[str, Any]) -> Row:
    change, complete = one["change_bytes"], one["complete_bytes"]
    told = f"{change / 1e3:.1f} KB each, {complete / 1e3:.0f} KB when complete"
    return Row("execution", f"{store}: its checkpoints", told, "< 100 KB", complete < SIZE_BAR_BYTES)
