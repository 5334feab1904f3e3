"""Declaring workflows in plain Python, and running what was declared."""

from __future__ import annotations

import asyncio
import functools
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import RunOptions, Workflow
from holdfast.application.app import App
from holdfast.domain.errors import (
    AgentFailedError,
    DeclarationError,
    InvalidIdError,
    RunError,
    UnsupportedTypeError,
)
from holdfast.execution.outcome import RunStatus
from holdfast.execution.plan import OnFailure, Retry, StageKind
from tests.application.versions import Home
from tests.execution.journals import PATIENCE_SECONDS
from tests.execution.runs import kinds, opened, run, types

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


@pytest.fixture(params=["memory", "sealed", "file", "sqlite"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(request.param, tmp_path)


def work(ctx: Any) -> str:
    return ctx.agent


def layers(workflow: Workflow) -> list[list[str]]:
    return [[stage.name for stage in layer] for layer in workflow.plan.layers]


def declared(workflow: Workflow, *names: str, **options: Any) -> list[Any]:
    return [workflow.agent(name=name, **options)(work) for name in names]


class Crowd:
    """Counts how many are inside at once."""

    def __init__(self, room: int) -> None:
        self.highest = self._inside = 0
        self._room = room
        self._full = asyncio.Event()

    async def stay(self, ctx: Any, item: Any = None) -> Any:
        """Stay until as many are in as may be: a limit that is too low would never be filled."""
        self._inside += 1
        self.highest = max(self.highest, self._inside)
        if self._inside >= self._room:
            self._full.set()
        await asyncio.wait_for(self._full.wait(), PATIENCE_SECONDS)
        for _ in range(5):
            # Long enough for one more to come in, if it could.
            await asyncio.sleep(0)
        self._inside -= 1
        return item


# -- declaring -----------------------------------------------------------------------------------


def test_a_declared_function_stays_a_function() -> None:
    workflow = Workflow("w")

    @workflow.agent
    def plan(ctx: Any) -> str:
        return "planned"

    @workflow.agent(name="second", after=plan)
    def other(ctx: Any) -> str:
        return "other"

    assert (plan(None), other(None)) == ("planned", "other")
    assert layers(workflow) == [["plan"], ["second"]]


def test_what_comes_before_is_named_in_any_way() -> None:
    workflow = Workflow("w")

    @workflow.agent
    def a(ctx: Any) -> None: ...

    team = workflow.parallel("team", after=())
    team.agent(name="b")(work)
    declared(workflow, "by_name", after="a")
    declared(workflow, "by_function", after=a)
    declared(workflow, "by_team", after=team)
    declared(workflow, "by_agent_of_a_team", after="b")
    declared(workflow, "by_all", after=["by_name", (a, team), {"by_team"}])
    assert layers(workflow) == [
        ["a", "team"],
        ["by_name", "by_function", "by_team", "by_agent_of_a_team"],
        ["by_all"],
    ]
    assert workflow.plan.agents["by_all"].after == ()
    assert set(workflow.plan.layers[2][0].after) == {"by_name", "a", "team", "by_team"}


def test_what_is_not_declared_yet_is_refused_at_once_by_name() -> None:
    workflow = Workflow("w")
    declared(workflow, "first")
    with pytest.raises(DeclarationError, match="'early' to come after") as refused:
        declared(workflow, "late", after="early")
    assert "first" in refused.value.hint


def test_a_circle_is_refused_by_whoever_closes_it() -> None:
    workflow = Workflow("w")
    stage = workflow.sequential("stage")
    stage.agent(name="a")(work)
    declared(workflow, "between", after="a")
    with pytest.raises(DeclarationError, match="circle"):
        stage.agent(name="b", after="between")(work)
    assert layers(workflow) == [["stage"], ["between"]]


def test_a_function_of_another_workflow_is_no_agent_of_this_one() -> None:
    with pytest.raises(DeclarationError, match="no agent of this workflow") as refused:
        declared(Workflow("w"), "a", after=work)
    assert refused.value.place == "work"
    with pytest.raises(DeclarationError, match="no agent of this workflow"):
        declared(Workflow("w"), "a", after=functools.partial(work, None))


def test_stages_follow_each_other_as_they_are_written() -> None:
    workflow = Workflow("w")
    workflow.sequential("first")
    workflow.parallel("second")
    workflow.loop("third").evaluator(work)
    workflow.sequential("beside", after="first")
    assert layers(workflow) == [["first"], ["second", "beside"], ["third"]]


def test_a_barrier_parts_everything_before_from_everything_after() -> None:
    workflow = Workflow("w")
    declared(workflow, "a", "b")
    workflow.barrier("wall")
    declared(workflow, "c", "d")
    declared(workflow, "e", after=["wall", "c"])
    assert layers(workflow) == [["a", "b"], ["wall"], ["c", "d"], ["e"]]
    assert workflow.plan.layers[1][0].kind is StageKind.BARRIER


def test_the_plan_is_made_anew_when_something_is_declared() -> None:
    workflow = Workflow("w")
    assert workflow.plan is workflow.plan
    declared(workflow, "a")
    assert list(workflow.plan.agents) == ["a"]
    team = workflow.sequential("team")
    assert list(workflow.plan.agents) == ["a"]
    team.agent(work)
    assert list(workflow.plan.agents) == ["a", "work"]


def test_options_of_agents_arrive() -> None:
    workflow = Workflow("w", retry=Retry(attempts=2), engines={"far": object()})
    own = Retry(attempts=5)
    declared(workflow, "plain")
    declared(
        workflow,
        "full",
        retry=own,
        timeout_seconds=1.5,
        on_failure="skip",
        risky=True,
        engine="far",
        concurrency=2,
    )
    team = workflow.parallel("team", concurrency=3)
    team.agent(name="member", retry=None)(work)
    agents = workflow.plan.agents
    assert agents["plain"].retry.attempts == agents["member"].retry.attempts == 2
    full = agents["full"]
    assert (full.retry, full.timeout_seconds, full.on_failure) == (own, 1.5, OnFailure.SKIP)
    assert (full.is_risky, full.engine, full.concurrency) == (True, "far", 2)
    assert workflow.plan.layers[0][-1].concurrency == 3


@pytest.mark.parametrize(
    "declare",
    [
        lambda w: declared(w, "a", "a"),
        lambda w: (w.sequential("a"), declared(w, "a")),
        lambda w: (declared(w, "a"), w.sequential("a")),
        lambda w: (w.sequential("s").agent(name="a")(work), declared(w, "a")),
        lambda w: (declared(w, "a"), w.sequential("s").agent(name="a")(work)),
        lambda w: [w.sequential("a")] * 2 and [t.agent(name="a")(work) for t in [w.sequential("b")] * 2],
        # In a stage of the same name, too.
        lambda w: [team.agent(name="s")(work) for team in [w.sequential("s")] * 2],
        lambda w: (w.sequential("s").agent(name="a")(work), w.parallel("a")),
    ],
)
def test_two_of_one_name_are_refused(declare: Callable[[Workflow], Any]) -> None:
    with pytest.raises(DeclarationError, match="have one name"):
        declare(Workflow("w"))


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize(
    "declare",
    [
        lambda n: Workflow("w", concurrency=n),
        lambda n: Workflow("w").parallel("s", concurrency=n),
        lambda n: declared(Workflow("w"), "a", concurrency=n),
        lambda n: declared(Workflow("w"), "a", timeout_seconds=n),
        lambda n: Workflow("w").loop("l", limit=n),
    ],
)
def test_numbers_that_cannot_be_are_refused(declare: Callable[[int], Any], number: int) -> None:
    with pytest.raises(DeclarationError):
        declare(number)


def test_an_engine_that_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(DeclarationError, match="'far'"):
        declared(Workflow("w"), "a", engine="far")


def test_names_that_could_be_mistaken_are_refused() -> None:
    with pytest.raises(DeclarationError):
        Workflow("w").agent(lambda ctx: None)
    with pytest.raises(DeclarationError):
        Workflow("w").sequential("a[0]")
    with pytest.raises(InvalidIdError):
        Workflow("")
    with pytest.raises(ValueError, match="shrug"):
        declared(Workflow("w"), "a", on_failure="shrug")


# -- running -------------------------------------------------------------------------------------


def test_a_workflow_without_agents_is_done_at_once(home: Home) -> None:
    with home.open(App()) as service:
        result = run(Workflow("empty"), service)
        assert (result.status, result.results, result.value) == (RunStatus.COMPLETED, {}, None)
        walled = Workflow("walled")
        walled.barrier("wall")
        assert run(walled, service, "WF-2").is_completed
        assert "sync_barrier" in kinds(service, "WF-2")
        assert run(walled, service, "WF-2").resumed


def test_no_items_are_no_work(home: Home) -> None:
    workflow = Workflow("w")

    @workflow.agent(each=lambda view: [])
    def none(ctx: Any, item: Any) -> None:
        raise AssertionError

    @workflow.agent(after=none)
    def after(ctx: Any) -> Any:
        return ctx.result("none")

    with home.open(App()) as service:
        assert run(workflow, service).value == []


def test_two_items_of_one_key_are_refused_by_it(home: Home) -> None:
    workflow = Workflow("w")

    @workflow.agent(each=lambda view: ["a", "b", "c"], key=lambda item: "x" if item != "b" else item)
    def each(ctx: Any, item: Any) -> None: ...

    with home.open(App()) as service, pytest.raises(DeclarationError, match="two items have one key: x"):
        run(workflow, service)


def test_names_and_keys_of_any_language(home: Home) -> None:
    workflow = Workflow("Übersicht")
    keys = ["kelp", "海藻", "a]#2", "[", "ñ > ü"]

    @workflow.agent(name="研究", each=lambda view: keys, key=str)
    def research(ctx: Any, item: str) -> str:
        return f"{ctx.step_id} {item}"

    with home.open(App()) as service:
        result = run(workflow, service, "Lauf-日")
        assert result.value == [f"研究[{key}] {key}" for key in keys]
        assert run(workflow, service, "Lauf-日").results == result.results


def test_a_condition_that_raises_ends_the_run_and_the_run_can_go_on(home: Home) -> None:
    workflow, wrong = Workflow("w"), [True]

    def when(view: Any) -> bool:
        if wrong:
            raise LookupError("no such input")
        return True

    declared(workflow, "first")
    workflow.agent(name="second", after="first", when=when)(work)
    with home.open(App()) as service:
        with pytest.raises(AgentFailedError, match="no such input") as caught:
            run(workflow, service)
        assert isinstance(caught.value.__cause__, LookupError) and "second" in caught.value.place
        wrong.clear()
        result = run(workflow, service)
        assert (result.kept, result.ran, result.value) == (1, 1, "second")


def test_a_loop_ends_at_its_limit(home: Home) -> None:
    workflow = Workflow("w")
    loop = workflow.loop("improve", limit=3)

    @loop.agent
    def draft(ctx: Any) -> int:
        return ctx.iteration

    @loop.evaluator(name="judge", timeout_seconds=60)
    def assess(ctx: Any) -> dict[str, Any]:
        return {"content": False, "of": ctx.result("draft")}

    with home.open(App()) as service:
        result = run(workflow, service)
        assert list(result.results) == ["draft", "judge", "draft#2", "judge#2", "draft#3", "judge#3"]
        assert result.value == {"content": False, "of": 3}


def test_a_loop_without_an_evaluator_is_refused_before_anything_is_recorded() -> None:
    workflow = Workflow("w")
    declared(workflow, "first")
    workflow.loop("improve", after="first").agent(name="draft")(work)
    with opened() as service:
        with pytest.raises(DeclarationError, match="one evaluator"):
            run(workflow, service)
        assert types(service) == []


def test_a_result_that_cannot_be_stored_fails_its_agent_and_not_the_run(home: Home) -> None:
    workflow, wrong = Workflow("w"), [True]
    declared(workflow, "first")

    @workflow.agent(after="first")
    def second(ctx: Any) -> Any:
        ctx.output("said")
        return object() if wrong else {"$hf": "fine"}

    with home.open(App()) as service:
        with pytest.raises(AgentFailedError, match="object") as failed:
            run(workflow, service)
        assert isinstance(failed.value.__cause__, UnsupportedTypeError)
        wrong.clear()
        result = run(workflow, service)
        assert (result.kept, result.value, result.outputs) == (1, {"$hf": "fine"}, ["said"])


def test_what_a_later_agent_does_to_a_result_is_its_own_affair(home: Home) -> None:
    workflow = Workflow("w")

    @workflow.agent
    def plan(ctx: Any) -> list[int]:
        return [1]

    @workflow.agent(after=plan)
    def spoil(ctx: Any) -> None:
        ctx.result("plan").append(2)

    @workflow.agent(after=spoil)
    def look(ctx: Any) -> Any:
        return ctx.result("plan")

    with home.open(App()) as service:
        assert run(workflow, service).value == [1]


def test_a_secret_is_hidden_from_later_agents_as_from_a_resumed_run() -> None:
    workflow, crash = Workflow("w"), [True]

    @workflow.agent
    def login(ctx: Any) -> dict[str, str]:
        return {"token": SECRET}

    @workflow.agent(after=login)
    def use(ctx: Any) -> Any:
        if crash:
            raise RuntimeError(str(ctx.result("login")))
        return ctx.result("login")

    with opened(redact=True) as service:
        with pytest.raises(AgentFailedError) as failed:
            run(workflow, service)
        assert SECRET not in str(failed.value)
        crash.clear()
        assert str(run(workflow, service).value) in str(failed.value)


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("place", ["workflow", "stage", "agent"])
def test_no_more_work_at_once_than_may(limit: int, place: str) -> None:
    crowd = Crowd(limit)
    workflow = Workflow("w", concurrency=limit if place == "workflow" else None)
    if place == "agent":
        workflow.agent(name="a", each=lambda view: range(9), concurrency=limit)(crowd.stay)
    else:
        team = workflow.parallel("team", concurrency=limit if place == "stage" else None)
        for number in range(9):
            team.agent(name=f"a{number}")(crowd.stay)
    with opened() as service:
        assert run(workflow, service).is_completed
    assert crowd.highest == limit


def test_the_limit_of_a_workflow_holds_for_everything_in_it() -> None:
    crowd = Crowd(3)
    workflow = Workflow("w", concurrency=3)
    workflow.agent(name="items", each=lambda view: range(6))(crowd.stay)
    for number in range(4):
        workflow.agent(name=f"a{number}")(crowd.stay)
    with opened() as service:
        assert run(workflow, service).is_completed
    assert crowd.highest == 3


def test_a_run_inside_a_running_loop_is_told_how_it_is_done() -> None:
    workflow = Workflow("w")
    declared(workflow, "a")

    async def inside() -> Any:
        with pytest.raises(RunError, match="an event loop runs here") as refused:
            workflow.run_sync("memory:", "WF-1")
        assert "await" in (refused.value.hint or "")
        return await workflow.run("memory:", "WF-1")

    assert asyncio.run(inside()).value == "a"


@pytest.mark.parametrize("is_async", [False, True])
def test_an_agent_runs_a_workflow_of_its_own(home: Home, is_async: bool) -> None:
    inner = Workflow("inner")
    declared(inner, "a")
    outer = Workflow("outer")
    with home.open(App()) as service:
        if is_async:

            @outer.agent
            async def call(ctx: Any) -> Any:
                return (await inner.run(service, f"{ctx.workflow_id}.inner")).value
        else:

            @outer.agent
            def call(ctx: Any) -> Any:
                return inner.run_sync(service, f"{ctx.workflow_id}.inner").value

        assert run(outer, service).value == "a"
        assert run(inner, service, "WF-1.inner").resumed


def test_many_runs_of_one_loop_share_a_store(home: Home) -> None:
    workflow = Workflow("w")
    workflow.agent(name="items", each=lambda view: range(3))(lambda ctx, item: item + ctx.inputs["n"])

    async def all_of_them(service: Any) -> list[Any]:
        runs = (workflow.run(service, f"WF-{number}", {"n": number}) for number in range(10))
        return await asyncio.gather(*runs)

    with home.open(App()) as service:
        results = asyncio.run(all_of_them(service))
        assert [result.value for result in results] == [[n, n + 1, n + 2] for n in range(10)]
        assert all(result.warnings == () for result in results)


def test_handlers_of_signals_are_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    workflow = Workflow("w")
    declared(workflow, "a")
    assert workflow.run_sync("memory:", "WF-1").is_completed
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_subscribers_that_raise_stop_nothing() -> None:
    def raising(kind: str, data: Any) -> None:
        raise RuntimeError("no")

    workflow = Workflow("w")
    declared(workflow, "a")
    assert workflow.run_sync("memory:", "WF-1", options=RunOptions(subscribers=(raising,))).value == "a"


def test_a_workflow_goes_on_from_a_checkpoint_and_from_an_agent(home: Home) -> None:
    workflow, seen = Workflow("w"), list[str]()
    team = workflow.sequential("team")

    def record(ctx: Any) -> int:
        seen.append(ctx.agent)
        return ctx.inputs["n"]

    for name in ("a", "b"):
        team.agent(name=name)(record)
    declared(workflow, "c", after=team)

    async def from_checkpoint(service: Any, checkpoint: str) -> Any:
        return await workflow.resume_from_checkpoint(service, checkpoint, new_workflow_id="WF-2")

    async def from_agent(service: Any) -> Any:
        return await workflow.rerun_from(service, "WF-1", "b", new_workflow_id="WF-3", inputs={"n": 2})

    with home.open(App()) as service:
        run(workflow, service, inputs={"n": 1})
        assert asyncio.run(from_checkpoint(service, "WF-1@1")).results == {"a": 1, "b": 1, "c": "c"}
        assert asyncio.run(from_agent(service)).results == {"a": 1, "b": 2, "c": "c"}
        assert seen == ["a", "b", "a", "b", "b"]
