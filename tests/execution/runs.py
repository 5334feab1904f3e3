"""Running workflows in tests, over stores in memory unless something else is wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import holdfast
from holdfast import CheckpointService, RunOptions, RunResult, Workflow, WorkflowState

Told = list[tuple[str, Mapping[str, Any]]]


def opened(url: str = "memory:", **settings: Any) -> CheckpointService:
    return holdfast.open(url, **settings)


def run(
    workflow: Workflow,
    service: CheckpointService,
    workflow_id: str = "WF-1",
    inputs: Mapping[str, Any] | None = None,
    **options: Any,
) -> RunResult:
    return workflow.run_sync(service, workflow_id, inputs, options=RunOptions(**options))


def chain(*functions: Callable[..., Any], **settings: Any) -> Workflow:
    """Declare functions as agents one after another."""
    workflow = Workflow("chain", **settings)
    team = workflow.sequential("steps")
    for function in functions:
        team.agent(function)
    return workflow


def types(service: CheckpointService, workflow_id: str = "WF-1") -> list[str]:
    return [event.type for event in service.events(workflow_id)]


def latest(service: CheckpointService, workflow_id: str = "WF-1") -> WorkflowState:
    state = service.load_latest(workflow_id)
    assert state is not None
    return state


def kinds(service: CheckpointService, workflow_id: str = "WF-1") -> list[str]:
    """Types of the checkpoints, oldest first."""
    return [str(meta.type) for meta in reversed(service.list_checkpoints(workflow_id))]


def told_to() -> tuple[Told, Callable[[str, Mapping[str, Any]], None]]:
    """Answer a list and a subscriber that fills it."""
    told: Told = []
    return told, lambda kind, data: told.append((kind, data))


def gathered(*works: Any) -> list[Any]:
    async def all_of_them() -> list[Any]:
        return list(await asyncio.gather(*works, return_exceptions=True))

    return asyncio.run(all_of_them())


def damage(place: Path) -> None:
    """Damage each checkpoint of a store of files on disk."""
    for path in (place / "checkpoints").rglob("*"):
        if path.suffix in (".json", ".jsonl"):
            path.write_bytes(path.read_bytes().replace(b"sha256:", b"sha256:0"))
