"""Coming back: ten thousand events to replay, the latest state of a thousand tasks, a point in between."""

from __future__ import annotations

import random
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.measure import Row, interleaved, p50, p95
from benchmarks.states import message, tasks_state, text
from holdfast import CheckpointService, WorkflowState
from holdfast.domain.errors import StateSizeWarning
from holdfast.domain.reducers import REDUCERS
from holdfast.domain.replay import replay

EVENTS = 10_000
TASKS = 1_000
ROUNDS = 20
URLS = {
    "memory": "memory:",
    "files": "{folder}/store",
    "SQLite": "sqlite:{folder}/store.db",
    "PostgreSQL": "postgresql+embedded:{folder}/server",
}


def run(folder: Path) -> list[Row]:
    warnings.simplefilter("ignore", StateSizeWarning)
    folder.mkdir()
    rows = []
    for name, url in URLS.items():
        with holdfast.open(url.format(folder=folder.resolve()), retain=False) as service:
            rows += _store(name, service)
    return [_fold(), *rows]


def events() -> list[tuple[str, dict[str, Any], str | None]]:
    """What happens in a busy workflow: each kind of event that Holdfast knows, in turns."""
    source = random.Random(11)
    makers: list[Callable[[int], tuple[str, dict[str, Any], str | None]]] = [
        lambda n: ("MESSAGE_ADDED", {"message": message(source, 120)}, None),
        lambda n: ("TASK_UPDATED", {"task": {"id": f"T-{source.randrange(TASKS):04d}", "n": n}}, None),
        lambda n: ("DECISION_RECORDED", {"description": text(source, 60), "confidence": 0.9}, f"a-{n % 7}"),
        lambda n: ("AGENT_STATE_UPDATED", {"state": {"progress": n / EVENTS}}, f"a-{n % 7}"),
        lambda n: ("CONTEXT_UPDATED", {"context": {f"key-{n % 300}": n}}, None),
        lambda n: ("OUTPUT_RECORDED", {"value": text(source, 60)}, None),
    ]
    return [makers[number % len(makers)](number) for number in range(EVENTS)]


def busy_state() -> WorkflowState:
    """A thousand tasks, each with the id that events name it by."""
    state = tasks_state("busy", TASKS)
    state.tasks = [{"id": task["task_id"], **task} for task in state.tasks]
    return state


def _fold() -> Row:
    """The reducers alone, nothing read."""
    with holdfast.open("memory:", retain=False) as service:
        _record(service)
        happened = service.events("busy")
    fields = busy_state().to_fields()
    (times,) = interleaved(ROUNDS, lambda: replay(fields, happened, REDUCERS))
    return _row("reducers alone, 10,000 events", times, 0.2)


def _store(name: str, service: CheckpointService) -> list[Row]:
    state = tasks_state("tasks", TASKS)
    for number in range(60):
        state.tasks[number * 7]["status"] = "again"
        service.create_checkpoint("tasks", state)
    _record(service)
    middle, cpu = f"busy@event:{EVENTS // 2}", list[float]()
    recoveries, latest, points = interleaved(
        ROUNDS,
        lambda: _recovered(service, cpu),
        lambda: service.restore_checkpoint("tasks@latest"),
        lambda: service.restore_checkpoint(middle),
    )
    if service.restore_checkpoint("tasks@latest").tasks != state.tasks:
        raise AssertionError("what was restored is another state")
    return [
        _row(f"{name}: recovery, 10,000 events", recoveries, 0.5, f", {p50(cpu) * 1e3:.0f} ms of CPU"),
        _row(f"{name}: restore latest, 1,000 tasks", latest, 0.1),
        _row(f"{name}: state at event 5,000", points, None),
    ]


def _record(service: CheckpointService) -> None:
    service.create_checkpoint("busy", busy_state())
    for type, data, agent in events():
        service.append_event("busy", type, data, agent_id=agent, wait=False)
    service.flush()


def _recovered(service: CheckpointService, cpu: list[float]) -> None:
    began = time.process_time()
    result = service.recover_workflow("busy")
    cpu.append(time.process_time() - began)
    if not result.success or result.events_replayed != EVENTS or result.warnings:
        raise AssertionError(f"the recovery went wrong: {result.warnings}")


def _row(what: str, times: list[float], bar: float | None, more: str = "") -> Row:
    told = f"p50 {p50(times) * 1e3:.1f} ms, p95 {p95(times) * 1e3:.1f} ms{more}"
    held = None if bar is None else p95(times) < bar
    return Row("recovery", what, told, "" if bar is None else f"< {bar * 1e3:.0f} ms p95", held)
