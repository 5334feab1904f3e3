"""Running again from an earlier point: from a checkpoint, or from an agent, always on a fork of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from holdfast.domain.errors import DeclarationError, InvalidStateError
from holdfast.execution.declared import Declared, StoreLike
from holdfast.execution.opening import opened, run_workflow
from holdfast.execution.options import RunOptions
from holdfast.execution.outcome import RunResult
from holdfast.execution.plan import Plan, StageKind


async def run_from_checkpoint(
    workflow: Declared,
    store: StoreLike,
    checkpoint: Any,
    new_workflow_id: str | None,
    options: RunOptions | None,
) -> RunResult:
    """Go on from a checkpoint; see `Workflow.resume_from_checkpoint`."""
    async with opened(store, workflow.app) as service:
        if new_workflow_id is not None:
            await asyncio.to_thread(service.recording.fork, checkpoint, new_workflow_id, _reopened)
            return await run_workflow(workflow, service, new_workflow_id, None, options)
        workflow_id, is_last = await asyncio.to_thread(service.recording.locate, checkpoint)
        if not is_last:
            raise InvalidStateError(
                "the workflow has gone on since that checkpoint",
                place=str(checkpoint),
                hint="Name a new_workflow_id: it goes on there, and nothing is overwritten.",
            )
        return await run_workflow(workflow, service, workflow_id, None, options)


async def rerun_from(
    workflow: Declared,
    store: StoreLike,
    workflow_id: str,
    agent: str,
    new_workflow_id: str,
    inputs: Mapping[str, Any] | None,
    options: RunOptions | None,
) -> RunResult:
    """Run again from an agent on; see `Workflow.rerun_from`."""
    plan = workflow.plan
    if agent not in plan.agents:
        raise DeclarationError(
            "there is no such agent", place=agent, hint=f"Known are: {', '.join(sorted(plan.agents))}."
        )
    forgotten = agents_from(plan, agent)

    def edit(fields: dict[str, Any]) -> dict[str, Any]:
        return _without(_reopened(fields), plan, forgotten, inputs)

    async with opened(store, workflow.app) as service:
        # What was committed after the last checkpoint is not to be done again.
        newest = await asyncio.to_thread(service.recording.newest, workflow_id)
        await asyncio.to_thread(service.recording.fork, newest, new_workflow_id, edit)
        return await run_workflow(workflow, service, new_workflow_id, None, options)


def agents_from(plan: Plan, agent: str) -> frozenset[str]:
    """Name an agent and everything that comes after it, directly or not."""
    stages = {stage.name: stage for layer in plan.layers for stage in layer}
    home = {name: one.stage for name, one in plan.agents.items()}
    first = stages[home[agent]]
    names = [one.name for one in first.agents]
    # In a loop everything hangs on everything; in a row, what stands behind.
    start = names.index(agent) if first.kind is StageKind.SEQUENTIAL else 0
    is_alone = first.kind is StageKind.PARALLEL
    found = {agent} if is_alone else set(names[start:])
    later = {first.name}
    for layer in plan.layers:
        for stage in layer:
            before = {home.get(name, name) for one in stage.agents for name in one.after} | set(stage.after)
            if stage.name not in later and before & later:
                later.add(stage.name)
                found |= {one.name for one in stage.agents}
    return frozenset(found)


def _reopened(fields: dict[str, Any]) -> dict[str, Any]:
    """Make a state one that can be gone on with, whatever came of the run it is from."""
    asked = ("settled_requests", "ends_as")
    metadata = {name: value for name, value in fields.get("metadata", {}).items() if name not in asked}
    return {**fields, "status": "in_progress", "resumable": True, "metadata": metadata}


def _without(
    fields: dict[str, Any], plan: Plan, forgotten: frozenset[str], inputs: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Leave out what some agents did; what they said to people stays in the run it was said in."""
    gone = {task["id"] for task in fields.get("tasks", ()) if task["agent"] in forgotten}
    roots = tuple(f"{name}{mark}" for name in forgotten for mark in "[#>")

    def is_gone(step_id: str) -> bool:
        return step_id in gone or step_id in forgotten or step_id.startswith(roots)

    stages = {plan.agents[name].stage for name in forgotten}
    agents = {step: state for step, state in fields.get("agent_states", {}).items() if not is_gone(step)}
    tasks = [task for task in fields.get("tasks", ()) if not is_gone(task["id"])]
    context = dict(fields.get("context", {}))
    if inputs is not None:
        context["inputs"] = {**context.get("inputs", {}), **inputs}
    return {
        **fields,
        "tasks": tasks,
        "current_step": len(tasks),
        "agent_states": agents,
        "stage_states": {k: v for k, v in fields.get("stage_states", {}).items() if k not in stages},
        "context": context,
    }
