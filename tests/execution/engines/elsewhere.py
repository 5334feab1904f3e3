"""An engine for tests of what happens on both sides of the wire: workers are threads, and all else is real.

They open the store of a run themselves, take leases and are fenced off, as processes are.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast import CheckpointService, RunOptions, RunResult, Workflow
from holdfast.execution.engines.landing import Landing
from holdfast.execution.remote.errand import Errand

LEASE_SECONDS = 20.0


class Elsewhere:
    """Runs each function in a thread of its own."""

    is_remote = True

    def __init__(self, *, store: str | None = None) -> None:
        self.store = store
        self.lease_seconds = LEASE_SECONDS
        self.poll_seconds = 0.02
        self.errands: list[Errand] = []
        self.cancelled = 0
        #: Stands in for what becomes of a function: given it, answers or raises.
        self.meanwhile: Callable[[Callable[[], Any]], Any] = lambda function: function()

    def check(self, function: Callable[..., Any]) -> None:
        """Take any function."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        landing = Landing(self._cancel)
        self.errands.extend(one for one in arguments if isinstance(one, Errand))

        def work() -> None:
            landing.settle(lambda: self.meanwhile(lambda: function(*arguments)))

        threading.Thread(target=work, daemon=True).start()
        return landing.future

    def close(self) -> None:
        """Have nothing to close."""

    def _cancel(self) -> None:
        self.cancelled += 1


def one_agent(function: Callable[..., Any], engine: Any, **options: Any) -> Workflow:
    """Declare a workflow of one agent, on an engine."""
    workflow = Workflow("alone", engines={"there": engine})
    workflow.agent(engine="there", **options)(function)
    return workflow


def run(
    workflow: Workflow, store: str | CheckpointService, inputs: dict[str, Any] | None = None, **options: Any
) -> RunResult:
    return workflow.run_sync(store, "WF-1", inputs, options=RunOptions(**options))


async def taken_over(running: asyncio.Future[RunResult], other: CheckpointService) -> None:
    """Let somebody else have a run, as after a kill: it ends, and has no say in what its worker does."""
    lease = other.lease_of("WF-1")
    assert lease is not None
    other.release_lease(lease)
    taken = other.acquire_lease("WF-1", "another")
    running.cancel()
    await asyncio.wait({running})
    other.release_lease(taken)


def store_in(folder: Path) -> str:
    return f"file:{folder}/store"
