"""Holdfast: a thousand agents one after another, in a process that may be told to kill itself."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.peers.steps import STEPS, WORKFLOW_ID, Asked, Steps, asked
from holdfast import Workflow

#: Imported before the clock starts, as importing a peer imports all of it: Holdfast waits until it needs it.
PARTS = (
    "apsw",
    "holdfast.adapters.filesystem.store",
    "holdfast.adapters.postgres.store",
    "holdfast.adapters.redaction",
    "holdfast.adapters.sqlite.store",
    "holdfast.execution.opening",
    "re2",
)


def main(asked: Asked) -> None:
    for part in PARTS:
        import_module(part)
    steps = Steps(asked)
    workflow = declared(steps)
    steps.begin()
    result = workflow.run_sync(asked.url, WORKFLOW_ID)
    end_seconds = steps.since()
    if not result.is_completed or len(result.results) != STEPS:
        raise AssertionError(f"the run ended as {result.status} with {len(result.results)} results")
    steps.report(end_seconds=end_seconds, checkpoints=result.checkpoints, warnings=len(result.warnings))


def declared(steps: Steps) -> Workflow:
    """Declare as many agents as there are steps, each with a name of its own."""
    workflow = Workflow("thousand")
    stage = workflow.sequential("steps")
    for number in range(STEPS):
        stage.agent(name=f"step-{number:04d}")(_agent(steps, number))
    return workflow


def _agent(steps: Steps, number: int) -> Callable[[Any], dict[str, Any]]:
    def step(ctx: Any) -> dict[str, Any]:
        return steps.step(number)

    return step


if __name__ == "__main__":
    main(asked())
