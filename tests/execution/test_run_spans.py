"""Runs and agents are spans, and what is resumed links to what was before."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import StatusCode

import holdfast
from holdfast import CheckpointService, Config, Context
from holdfast.adapters.memory import MemoryStore
from holdfast.bootstrap import build_kit
from holdfast.domain.errors import AgentFailedError
from holdfast.execution.run_spans import TRACEPARENT
from tests.application.watched import Collected
from tests.execution.runs import chain, latest, run


def traced(collected: Collected | None, store: MemoryStore | None = None) -> CheckpointService:
    """Open a service that hides secrets, as all do, and traces."""
    kit = build_kit(store or MemoryStore(), Config(background=False))
    return CheckpointService(replace(kit, tracing=collected.tracing if collected else None))


def only(collected: Collected, name: str) -> ReadableSpan:
    [span] = collected.named(name)
    return span


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def plan(context: Context) -> str:
    return "planned"


def write(context: Context) -> str:
    return "written"


def test_a_run_is_a_span_and_each_agent_one_inside() -> None:
    collected = Collected()
    run(chain(plan, write), traced(collected))
    whole = only(collected, "invoke_workflow chain")
    assert attributes(whole) == {
        "holdfast.workflow_id": "WF-1",
        "holdfast.workflow": "chain",
        "holdfast.run.status": "completed",
    }
    for name in ("plan", "write"):
        agent = only(collected, f"invoke_agent {name}")
        assert agent.parent is not None and whole.context is not None
        assert agent.parent.span_id == whole.context.span_id
        assert attributes(agent)["holdfast.step_id"] == name
    saves = collected.named("holdfast.save")
    assert saves and {span.context.trace_id for span in saves if span.context} == {whole.context.trace_id}


def test_the_words_of_drafts_are_used_only_where_they_are_wanted() -> None:
    plain, drafting = Collected(), Collected(is_drafting=True)
    for collected in (plain, drafting):
        run(chain(plan), traced(collected))
    assert not any(name.startswith("gen_ai") for span in plain.spans for name in attributes(span))
    told = attributes(only(drafting, "invoke_workflow chain"))
    assert told["gen_ai.operation.name"] == "invoke_workflow"
    assert (told["gen_ai.workflow.name"], told["gen_ai.conversation.id"]) == ("chain", "WF-1")
    told = attributes(only(drafting, "invoke_agent plan"))
    assert (told["gen_ai.operation.name"], told["gen_ai.agent.name"]) == ("invoke_agent", "plan")


@pytest.mark.parametrize("is_async", [False, True])
def test_what_an_agent_traces_itself_is_inside_its_span(is_async: bool) -> None:
    collected, seen = Collected(), []

    def own(context: Context) -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)

    async def own_async(context: Context) -> None:
        own(context)

    run(chain(own_async if is_async else own), traced(collected))
    agent = only(collected, f"invoke_agent {'own_async' if is_async else 'own'}")
    assert agent.context is not None and seen == [agent.context.span_id]


def test_a_run_that_is_resumed_links_to_the_span_before() -> None:
    collected, store, faults = Collected(), MemoryStore(), [RuntimeError("once"), RuntimeError("twice")]

    def fails(context: Context) -> str:
        if faults:
            raise faults.pop()
        return "done"

    for _ in range(2):
        with pytest.raises(AgentFailedError):
            run(chain(plan, fails), traced(collected, store))
    run(chain(plan, fails), traced(collected, store))
    first, second, third = collected.named("invoke_workflow chain")
    assert first.status.status_code is StatusCode.ERROR and not first.links
    assert [link.context.span_id for link in second.links] == [first.context and first.context.span_id]
    assert [link.context.span_id for link in third.links] == [second.context and second.context.span_id]
    assert first.context is not None and third.context is not None
    assert first.context.trace_id != third.context.trace_id


def test_nothing_is_remembered_where_nobody_traces() -> None:
    service = traced(None)
    run(chain(plan), service)
    assert TRACEPARENT not in latest(service).metadata


def test_whoever_goes_on_without_tracing_keeps_the_name_of_the_span() -> None:
    collected, store, faults = Collected(), MemoryStore(), [RuntimeError("once")]

    def fails(context: Context) -> str:
        if faults:
            raise faults.pop()
        return "done"

    with pytest.raises(AgentFailedError):
        run(chain(fails), traced(collected, store))
    service = traced(None, store)
    run(chain(fails), service)
    [span] = collected.named("invoke_workflow chain")
    assert span.context is not None
    assert f"{span.context.span_id:016x}" in latest(service).metadata[TRACEPARENT]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_durable_function_is_a_run_too(is_async: bool, tmp_path: Path) -> None:
    collected, store, faults = Collected(), MemoryStore(), [RuntimeError("once")]
    service = traced(collected, store)

    @holdfast.step
    def fetch() -> int:
        return 7

    @holdfast.durable(service, id="report")
    def report() -> int:
        fetched = fetch()
        if faults:
            raise faults.pop()
        return fetched

    @holdfast.durable(service, id="report-async")
    async def report_async() -> int:
        if faults:
            raise faults.pop()
        return 7

    def call() -> int:
        return asyncio.run(report_async()) if is_async else report()

    with pytest.raises(RuntimeError):
        call()
    assert call() == 7
    first, second = collected.named(f"invoke_workflow {'report_async' if is_async else 'report'}")
    assert first.status.status_code is StatusCode.ERROR
    assert [link.context.span_id for link in second.links] == [first.context and first.context.span_id]
