"""Keeping count of a run by what it tells: one row for each agent, and sums for the whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.domain.run_events import added


@dataclass(slots=True)
class Row:
    """How one agent stands: it may have several steps, one for each item or each round of a loop.

    Attributes:
        total: how many steps it has, as far as that is known.
        kept: how many were done before this run.
        running: when each step that is at work began.
        share: how far it says to be, from 0 to 1.
        doing: what it says to be doing, or to wait for.
    """

    name: str
    total: int = 1
    done: int = 0
    kept: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    share: float | None = None
    doing: str = ""
    running: dict[str, float] = field(default_factory=dict)

    @property
    def over(self) -> int:
        """How many steps need no more work."""
        return self.done + self.kept + self.skipped

    @property
    def is_many(self) -> bool:
        """Whether it has more than one step."""
        return max(self.total, self.over + len(self.running)) > 1

    @property
    def steps(self) -> int:
        """How many steps it has at least."""
        return max(self.total, self.over + len(self.running))


class Tally:
    """Counts what a run tells. Told by any thread; read by the one that shows it."""

    def __init__(self, agents: Iterable[str] = (), clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._mutex = threading.Lock()
        self.rows = {name: Row(name) for name in agents}
        self.is_begun = False
        self.is_resumed = False
        self.status = ""
        self.seconds = 0.0
        self.ran = 0
        self.checkpoints = 0
        self.last_checkpoint = ""
        #: How many of them did not wait, and the last of those.
        self.durable_checkpoints = 0
        self.last_durable = ""
        self.metrics: dict[str, Any] = {}
        self.warnings: list[str] = []
        #: Open questions: step and name.
        self.waiting: dict[tuple[str, str], str] = {}

    @property
    def kept(self) -> int:
        """How many steps were done before this run."""
        return sum(row.kept for row in self.rows.values())

    def begin_from(self, fields: Mapping[str, Any]) -> None:
        """Count what a run that is gone on with has done before."""
        for task in fields.get("tasks", ()):
            if isinstance(task, Mapping) and task.get("agent"):
                self._row(str(task["agent"])).kept += 1
        for stage in fields.get("stage_states", {}).values():
            for step, items in stage.get("items", {}).items():
                self._row(str(step).partition("#")[0]).total = max(len(items), 1)
        self.metrics = dict(fields.get("metrics", {}))

    def told(self, kind: str, data: Mapping[str, Any]) -> None:
        """Count one thing that happened; what is not known here is left to those who know it."""
        count = getattr(self, f"_{kind}", None)
        if count is not None:
            with self._mutex:
                count(data)

    def made(self, *, in_store: bool) -> tuple[int, str]:
        """Count checkpoints and name the last; those that waited are left out if the store never got them."""
        if in_store:
            return self.durable_checkpoints, self.last_durable
        return self.checkpoints, self.last_checkpoint

    def snapshot(self) -> list[Row]:
        """Answer the rows, in the order of the plan."""
        with self._mutex:
            return list(self.rows.values())

    def _run_started(self, data: Mapping[str, Any]) -> None:
        self.is_begun, self.is_resumed = True, bool(data.get("resumed"))

    def _agent_items(self, data: Mapping[str, Any]) -> None:
        self._row(data["agent"]).total = max(int(data["count"]), 1)

    def _agent_started(self, data: Mapping[str, Any]) -> None:
        self.ran += 1
        row = self._row(data["agent"])
        row.running[data["step_id"]] = self._clock()
        row.share, row.doing = None, ""

    def _agent_completed(self, data: Mapping[str, Any]) -> None:
        row = self._ended(data)
        row.done += 1
        row.seconds += data.get("seconds") or 0.0
        self.metrics = added(self.metrics, data.get("metrics") or {})

    def _agent_failed(self, data: Mapping[str, Any]) -> None:
        row = self._ended(data)
        row.failed += 1
        row.doing = str(data.get("error", ""))

    def _agent_skipped(self, data: Mapping[str, Any]) -> None:
        row = self._ended(data)
        row.skipped += 1
        row.doing = str(data.get("reason", ""))

    def _agent_progress(self, data: Mapping[str, Any]) -> None:
        row = self._row(data["agent"])
        row.share, row.doing = data.get("share"), data.get("note") or ""

    def _agent_blocked(self, data: Mapping[str, Any]) -> None:
        for row in self.rows.values():
            if data["step_id"] in row.running:
                row.doing = f"blocked: {data['reason']}" if data.get("reason") else ""

    def _approval_requested(self, data: Mapping[str, Any]) -> None:
        self.waiting[data["step_id"], data["name"]] = str(data.get("question", ""))

    def _approval_answered(self, data: Mapping[str, Any]) -> None:
        self.waiting.pop((data["step_id"], data["name"]), None)

    def _checkpoint_saved(self, data: Mapping[str, Any]) -> None:
        self.checkpoints += 1
        self.last_checkpoint = str(data["checkpoint_id"])
        if data.get("durable", True):
            self.durable_checkpoints, self.last_durable = self.durable_checkpoints + 1, self.last_checkpoint

    def _checkpoint_failed(self, data: Mapping[str, Any]) -> None:
        self.warnings.append(f"a checkpoint failed: {data['error']}")

    def _commit_failed(self, data: Mapping[str, Any]) -> None:
        self.warnings.append(f"not durable: {data['error']}")

    def _warning(self, data: Mapping[str, Any]) -> None:
        self.warnings.append(str(data["text"]))

    def _run_ended(self, data: Mapping[str, Any]) -> None:
        self.status, self.seconds = str(data["status"]), float(data["seconds"])

    def _ended(self, data: Mapping[str, Any]) -> Row:
        row = self._row(data["agent"])
        row.running.pop(data["step_id"], None)
        row.share, row.doing = None, ""
        return row

    def _row(self, name: str) -> Row:
        # Agents that are spawned while it runs are in no plan.
        return self.rows.setdefault(name, Row(name))
