"""Runs of a real team, made by the executor, for what is counted over them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holdfast
from holdfast import CheckpointService, RunOptions, Workflow
from holdfast.application.kit import Kit
from holdfast.domain.errors import AgentFailedError
from holdfast.execution.plan import Retry

STORES = ("memory:", "file:", "sqlite:")


def team() -> Workflow:
    """Declare a team: a plan, research for each topic, a loop of writing and judging, and a publisher.

    The inputs say how many rounds the loop takes, and how often the publisher fails before it succeeds.
    """
    workflow = Workflow("team")
    failures: dict[str, int] = {}

    @workflow.agent
    def plan(ctx: Any) -> list[str]:
        ctx.metrics(tokens=100, cost_usd=0.5)
        return ["kelp", "tide"]

    @workflow.agent(after=plan, each=lambda run: run.result("plan"))
    def research(ctx: Any, topic: str) -> str:
        ctx.metrics(tokens=10)
        return topic

    loop = workflow.loop("drafts", until=lambda verdict: verdict["good"], after=research)

    @loop.agent
    def write(ctx: Any) -> str:
        return f"draft {ctx.iteration}"

    @loop.evaluator
    def judge(ctx: Any) -> dict[str, bool]:
        return {"good": ctx.iteration >= ctx.inputs.get("rounds", 1)}

    @workflow.agent(after=loop, retry=Retry(attempts=2, delay_seconds=0.0))
    def publish(ctx: Any) -> str:
        failures[ctx.workflow_id] = failures.get(ctx.workflow_id, 0) + 1
        if failures[ctx.workflow_id] <= ctx.inputs.get("failures", 0):
            raise ValueError("no ink")
        return "published"

    return workflow


def run(service: CheckpointService, workflow: Workflow, workflow_id: str, **inputs: Any) -> str:
    """Run the team, or go on with it; answer how that ended."""
    try:
        result = workflow.run_sync(service, workflow_id, inputs or None, options=RunOptions())
    except AgentFailedError:
        return "failed"
    return str(result.status)


def open_at(url: str, folder: Any, **settings: Any) -> CheckpointService:
    """Open a store of a kind in a folder."""
    places: Mapping[str, str] = {"file:": f"file:{folder}/store", "sqlite:": f"sqlite:{folder}/store.db"}
    return holdfast.open(places.get(url, url), background=False, **settings)


def kit_of(service: CheckpointService) -> Kit:
    return service._engine.kit
