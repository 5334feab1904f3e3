"""Running again from an earlier point: from a checkpoint, or from an agent, always on a fork of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.application.recording import Recording
from holdfast.domain.errors import CheckpointConflictError, DeclarationError, InvalidStateError
from holdfast.domain.event import Event
from holdfast.domain.unsaid import unsaid
from holdfast.execution.declared import Declared, Service, StoreLike
from holdfast.execution.drift import news, renames
from holdfast.execution.opening import run_on, run_workflow
from holdfast.execution.options import RunOptions
from holdfast.execution.outcome import RunResult
from holdfast.execution.plan import Plan, StageKind
from holdfast.execution.results import parted


async def run_from_checkpoint(
    workflow: Declared,
    store: StoreLike,
    checkpoint: Any,
    new_workflow_id: str | None,
    options: RunOptions | None,
) -> RunResult:
    """Go on from a checkpoint; see `Workflow.resume_from_checkpoint`."""

    async def go_on(service: Service) -> RunResult:
        if new_workflow_id is not None:
            await asyncio.to_thread(_check_free, service.recording, new_workflow_id)
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

    return await run_on(store, workflow.app, go_on)


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

    async def run_again(service: Service) -> RunResult:
        recording = service.recording

        def edit(fields: dict[str, Any]) -> dict[str, Any]:
            said = news(fields, options.renamed if options else {}, plan.agents)
            names = renames(fields, said, plan.agents)
            events = recording.events(workflow_id, 0)
            return _given(_without(_reopened(fields), plan, forgotten, events, names), inputs)

        await asyncio.to_thread(_check_free, recording, new_workflow_id)
        # What was committed after the last checkpoint is not to be done again.
        newest = await asyncio.to_thread(recording.newest, workflow_id)
        await asyncio.to_thread(recording.fork, newest, new_workflow_id, edit)
        return await run_workflow(workflow, service, new_workflow_id, None, options)

    return await run_on(store, workflow.app, run_again)


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
    fields: dict[str, Any],
    plan: Plan,
    forgotten: frozenset[str],
    events: Sequence[Event],
    renamed: Mapping[str, str],
) -> dict[str, Any]:
    """Leave out what some agents did and said; it stays in the run that it was done in."""

    def is_gone(step_id: object) -> bool:
        agent = parted(str(step_id))[0]
        return renamed.get(agent, agent) in forgotten

    agents = {step: state for step, state in fields.get("agent_states", {}).items() if not is_gone(step)}
    tasks = [task for task in fields.get("tasks", ()) if not is_gone(task.get("id"))]
    stages = {}
    for name, state in fields.get("stage_states", {}).items():
        left = _stage_without(state, plan, renamed.get(name, name), forgotten, is_gone)
        if left is not None:
            stages[name] = left
    return {
        **unsaid(fields, events, is_gone),
        "tasks": tasks,
        "current_step": len(tasks),
        "agent_states": agents,
        "stage_states": stages,
    }


def _stage_without(
    state: Mapping[str, Any],
    plan: Plan,
    stage: str,
    forgotten: frozenset[str],
    is_gone: Callable[[object], bool],
) -> Mapping[str, Any] | None:
    """Answer what stays known of a stage: nothing where its agents are forgotten, or where it was skipped."""
    names = {one.name for one in plan.agents.values() if one.stage == stage}
    if names & forgotten and (names <= forgotten or state.get("status") == "skipped"):
        return None
    if "items" not in state:
        return state
    return {**state, "items": {step: one for step, one in state["items"].items() if not is_gone(step)}}


def _given(fields: dict[str, Any], inputs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Put other inputs into a state."""
    context = fields.get("context", {})
    known = context.get("inputs", {})
    return {**fields, "context": {**context, "inputs": {**known, **(inputs or {})}}}


def _check_free(recording: Recording, workflow_id: str) -> None:
    if recording.exists(workflow_id):
        raise CheckpointConflictError(
            "there is a workflow of that name", place=workflow_id, hint="Name a new_workflow_id that is free."
        )
