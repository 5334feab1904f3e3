"""Every step of a run tells the one step it comes from: in the plan, in the events, after a crash too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import holdfast
from holdfast import AgentFailedError, CheckpointService, Workflow
from holdfast.execution.context import Context
from holdfast.execution.origins import Origins, origins_of
from holdfast.execution.plan import Agent, Plan, Stage, StageKind, make_plan
from tests.execution.runs import chain, opened, run


def work(ctx: object, item: object = None) -> None:
    """Do nothing."""


def several(view: object) -> list[int]:
    return [1, 2]


def stage(name: str, kind: StageKind, *agents: Agent, after: Sequence[str] = ()) -> Stage:
    return Stage(name, kind, agents, tuple(after))


def agents(home: str, *names: str, **more: Any) -> list[Agent]:
    return [Agent(name, work, home, **more) for name in names]


def planned(*stages: Stage) -> Plan:
    return make_plan("w", {one.name: one for one in stages})


def lone(name: str, *after: str, **more: Any) -> Stage:
    return stage(name, StageKind.SEQUENTIAL, *agents(name, name, after=after, **more))


def parents(service: CheckpointService, workflow_id: str = "WF-1") -> dict[str, str | None]:
    """Answer what the events tell of where each step came from, all events of a step alike."""
    told: dict[str, set[str | None]] = {}
    for event in service.events(workflow_id):
        if event.type in ("AGENT_STARTED", "AGENT_COMPLETED", "AGENT_FAILED", "AGENT_SKIPPED"):
            told.setdefault(str(event.step_id), set()).add(event.parent_id)
    return {step_id: one for step_id, [one] in told.items()}


def test_an_agent_comes_from_the_one_it_stands_after_or_is_declared_after() -> None:
    row = stage("row", StageKind.SEQUENTIAL, *agents("row", "a", "b"))
    found = origins_of(planned(row, lone("c", "b"), lone("d", "row")))
    assert found.before == {"b": "a", "c": "b", "d": "b"}


def test_whoever_comes_after_several_comes_from_none_of_them() -> None:
    both = stage("both", StageKind.PARALLEL, *agents("both", "a", "b"))
    items = lone("items", each=several)
    stages = (lone("c", "both"), lone("d", "a"), lone("e", "a", "d"), items, lone("f", "items"))
    assert origins_of(planned(both, *stages)).before == {"d": "a"}


def test_what_stands_behind_a_barrier_comes_from_whom_that_waited_for() -> None:
    first = lone("a")
    barrier = stage("wait", StageKind.BARRIER, after=["a"])
    after = stage("after", StageKind.PARALLEL, *agents("after", "b", "c"), after=["wait"])
    assert origins_of(planned(first, barrier, after)).before == {"b": "a", "c": "a"}


def named(workflow: Workflow, *names: str, **more: Any) -> None:
    for name in names:
        workflow.agent(name=name, **more)(work)


def test_behind_a_barrier_nobody_is_told_who_is_before_somebody_else_that_is_waited_for() -> None:
    workflow = Workflow("w")
    named(workflow, "a")
    named(workflow, "a2", after="a")
    workflow.barrier("wait")
    named(workflow, "b")
    named(workflow, "c", after="b")
    workflow.barrier("again")
    named(workflow, "d")
    assert origins_of(workflow.plan).before == {"a2": "a", "b": "a2", "c": "b", "d": "c"}


def test_a_plan_of_many_barriers_is_read_in_one_go() -> None:
    workflow = Workflow("w")
    for number in range(60):
        named(workflow, f"a{number}")
        workflow.barrier(f"b{number}")
    assert origins_of(workflow.plan).before == {f"a{n}": f"a{n - 1}" for n in range(1, 60)}


def test_what_an_agent_and_its_stage_come_after_counts_together() -> None:
    first, z = agents("row", "first", after=("y",)), agents("late", "z", after=("y",))
    row = stage("row", StageKind.SEQUENTIAL, *first, *agents("row", "next"), after=["x"])
    late = stage("late", StageKind.SEQUENTIAL, *agents("late", "q"), *z, after=["x"])
    found = origins_of(planned(lone("x"), lone("y"), row, late)).before
    assert found == {"next": "first", "q": "x"}


def test_a_round_that_ends_with_several_steps_is_followed_by_none_of_them() -> None:
    judge = agents("loop", "judge", is_evaluator=True)
    loop = stage("loop", StageKind.LOOP, *judge, *agents("loop", "fan", each=several), after=["plan"])
    assert origins_of(planned(lone("plan"), loop)) == Origins(
        {"judge": "plan", "fan": "judge"}, {"judge": None}
    )


def test_a_round_comes_from_the_one_before() -> None:
    loop = stage(
        "loop", StageKind.LOOP, *agents("loop", "draft"), *agents("loop", "judge", is_evaluator=True)
    )
    assert origins_of(planned(loop)) == Origins({"judge": "draft"}, {"draft": "judge"})


def looped() -> Workflow:
    workflow = Workflow("looped")

    @workflow.agent
    def plan(ctx: Context) -> int:
        return 1

    loop = workflow.loop("improve", limit=3, after=plan)

    @loop.agent
    def draft(ctx: Context) -> int:
        return ctx.spawn(lambda inner: inner.iteration, name="help")

    @loop.evaluator
    def judge(ctx: Context) -> bool:
        return ctx.iteration == 2

    @workflow.agent(after=loop)
    async def publish(ctx: Context) -> str | None:
        return ctx.parent_id

    @workflow.agent(after=publish, when=lambda view: False)
    def never(ctx: Context) -> None:
        """Is not needed."""

    return workflow


def test_the_events_of_a_run_tell_where_each_step_came_from() -> None:
    with opened() as service:
        outcome = run(looped(), service)
        assert outcome.results["publish"] == "judge#2"
        assert parents(service) == {
            "plan": None,
            "draft": "plan",
            "draft>help": "draft",
            "judge": "draft",
            "draft#2": "judge",
            "draft#2>help": "draft#2",
            "judge#2": "draft#2",
            "publish": "judge#2",
            "never": "publish",
        }


def test_a_step_that_never_was_is_where_nothing_comes_from() -> None:
    workflow = Workflow("optional")
    named(workflow, "plan")
    optional = workflow.sequential("optional", after="plan", when=lambda view: False)
    optional.agent(name="maybe")(work)
    named(workflow, "last", after="maybe")
    with opened() as service:
        run(workflow, service)
        assert parents(service) == {"plan": None, "last": None}


def test_who_follows_what_was_a_loop_before_comes_from_its_last_round() -> None:
    is_broken = [True]

    def version(*, is_loop: bool) -> Workflow:
        workflow = Workflow("v")
        team = workflow.loop("l", limit=2) if is_loop else workflow.sequential("l")

        @(team.evaluator if is_loop else team.agent)
        def judge(ctx: Context) -> bool:
            return ctx.iteration == 2

        @workflow.agent(after=judge)
        def last(ctx: Context) -> str | None:
            if is_broken and is_broken.pop():
                raise RuntimeError("not yet")
            return ctx.parent_id

        return workflow

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(version(is_loop=True), service)
        assert run(version(is_loop=False), service).results["last"] == "judge#2"


def test_a_branch_that_is_confirmed_comes_from_the_step_that_tried_it() -> None:
    def bold(ctx: Context) -> Any:
        branch = ctx.speculate(lambda inner: inner.parent_id, name="guess")
        branch.confirm()
        return branch.result

    with opened() as service:
        assert run(chain(bold), service).results["bold"] == "bold"
        assert parents(service) == {"bold": None, "bold>guess": "bold"}


def test_a_step_tells_the_same_when_it_is_taken_up_again() -> None:
    is_broken = [True]

    def one(ctx: Context) -> int:
        return 1

    def two(ctx: Context) -> int:
        if is_broken.pop() if is_broken else False:
            raise RuntimeError("not yet")
        return 2

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(one, two), service)
        run(chain(one, two), service)
        assert parents(service) == {"one": None, "two": "one"}


def test_a_step_inside_of_a_durable_one_comes_from_that() -> None:
    @holdfast.step
    def inner(number: int) -> int:
        return number + 1

    @holdfast.step
    async def outer(number: int) -> int:
        return inner(number) * 2

    with opened() as service:

        @holdfast.durable(service, id="WF-1")
        async def whole() -> int:
            return await outer(1) + inner(5)

        assert asyncio.run(whole()) == 10
        assert parents(service) == {"outer": None, "outer>inner": "outer", "inner": None}
