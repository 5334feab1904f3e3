"""A workflow that changed between a crash and the resume: nothing is stranded or taken for another."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from holdfast import AgentFailedError, CheckpointService, RunResult, Workflow
from holdfast.domain.errors import GraphChangedError
from holdfast.execution.context import Context
from tests.execution.runs import opened, run

Declare = Callable[[Workflow], Any]


def ending(declare: Declare, *, fails: bool = False, of: str = "a") -> Workflow:
    """Declare a workflow whose last agent answers what another one did, or breaks."""
    workflow = Workflow("changing")
    before = declare(workflow)

    @workflow.agent(after=before)
    def end(ctx: Context) -> Any:
        if fails:
            raise RuntimeError("broken")
        return ctx.result(of)

    return workflow


def changed(service: CheckpointService, before: Declare, now: Declare, of: str, **options: Any) -> RunResult:
    """Break at the end of one graph, and go on with another."""
    with pytest.raises(AgentFailedError):
        run(ending(before, fails=True), service)
    return run(ending(now, of=of), service, **options)


def plain(name: str, answer: Any) -> Declare:
    def declare(workflow: Workflow) -> Any:
        workflow.agent(name=name)(lambda ctx: answer)
        return name

    return declare


def fanned(name: str, items: list[Any]) -> Declare:
    def declare(workflow: Workflow) -> Any:
        workflow.agent(name=name, each=lambda view: items)(lambda ctx, item: item)
        return name

    return declare


def rounds(limit: int, content: int, *more: str) -> Declare:
    def declare(workflow: Workflow) -> Any:
        loop = workflow.loop("improve", limit=limit)
        loop.agent(name="draft")(lambda ctx: f"draft {ctx.iteration}")
        for name in more:
            loop.agent(name=name)(lambda ctx: f"{ctx.agent} {ctx.iteration}")
        loop.evaluator(name="judge")(lambda ctx: ctx.iteration == content)
        return loop

    return declare


def test_a_fan_out_that_runs_alone_now_is_run_so_and_that_is_told() -> None:
    with opened() as service:
        result = changed(service, fanned("a", [1, 2]), plain("a", "alone"), "a")
    assert result.value == "alone" and any("'a' runs for no items now" in text for text in result.warnings)


def test_an_agent_that_runs_for_items_now_is_run_for_them_and_that_is_told() -> None:
    with opened() as service:
        result = changed(service, plain("a", "alone"), fanned("a", [1, 2]), "a")
    assert result.value == [1, 2] and any("'a' runs for several items" in text for text in result.warnings)


def test_another_shape_of_an_agent_is_refused_where_that_was_asked_for() -> None:
    with opened() as service, pytest.raises(GraphChangedError, match="several items"):
        changed(service, plain("a", "alone"), fanned("a", [1, 2]), "a", strict=True)


def test_an_agent_that_came_into_a_loop_that_is_over_is_run_in_its_last_round() -> None:
    with opened() as service:
        result = changed(service, rounds(3, 2), rounds(3, 2, "extra"), "extra")
    assert result.value == "extra 2" and "extra" not in result.results and result.ran == 2


def test_an_agent_that_left_its_loop_answers_what_it_said_in_the_last_round() -> None:
    with opened() as service:
        result = changed(service, rounds(3, 2), plain("draft", "alone"), "draft")
    assert result.value == "draft 2" and result.ran == 1


def test_a_loop_that_ended_at_its_limit_goes_on_when_that_is_raised() -> None:
    with opened() as service:
        result = changed(service, rounds(2, 4), rounds(5, 4), "draft")
    assert result.value == "draft 4"
    assert result.warnings == ("loop 'improve' has 5 rounds at most now, and had 2",)


def test_a_loop_that_was_content_has_no_further_round_whatever_its_limit() -> None:
    with opened() as service:
        result = changed(service, rounds(2, 1), rounds(9, 4), "draft")
    assert result.value == "draft 1" and result.ran == 1


def both(first: Declare, second: Declare) -> Declare:
    return lambda workflow: (first(workflow), second(workflow))


def test_a_new_agent_with_the_name_of_one_that_was_renamed_is_run() -> None:
    then, now = plain("b", "old"), both(plain("b", "new"), plain("c", "never"))
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(ending(then, fails=True), service)
        with pytest.raises(AgentFailedError):
            run(ending(now, fails=True), service, renamed={"b": "c"})
        # Said once or twice, names are what they are.
        result = run(ending(now, of="b"), service, renamed={"b": "c"})
    assert result.value == "new" and result.ran == 1
    assert {"b": "old", "b~2": "new"}.items() <= result.results.items()


def test_two_agents_can_change_their_names_with_each_other() -> None:
    then, now = both(plain("a", 1), plain("b", 2)), both(plain("a", "never"), plain("b", "never"))
    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(ending(then, fails=True), service)
        with pytest.raises(AgentFailedError):
            run(ending(now, fails=True), service, renamed={"a": "b", "b": "a"})
        result = run(ending(now, of="a"), service, renamed={"a": "b", "b": "a"})
    assert result.value == 2 and result.ran == 1


def test_what_was_spawned_stays_with_its_agent_when_names_are_changed() -> None:
    calls: list[str] = []

    def declare(workflow: Workflow, fails: bool) -> Any:
        for name in "ab":

            @workflow.agent(name=name)
            def parent(ctx: Context) -> Any:
                def part(inner: Context) -> str:
                    calls.append(ctx.agent)
                    return ctx.agent

                answer = ctx.spawn(part)
                if fails:
                    raise RuntimeError("broken")
                return answer

        return "a"

    with opened() as service:
        with suppress(AgentFailedError):
            run(ending(lambda workflow: declare(workflow, True)), service)
        now = ending(lambda workflow: declare(workflow, False))
        result = run(now, service, renamed={"a": "b", "b": "a"})
    assert result.value == "b" and sorted(calls) == ["a", "b"]


def test_a_name_that_no_agent_has_renames_nobody() -> None:
    with opened() as service:
        result = changed(service, plain("a", 1), plain("a", 2), "a", renamed={"a": "nobody"})
    assert result.value == 1 and result.ran == 1


@pytest.mark.parametrize("name", ["old", "new"])
def test_the_items_of_a_fan_out_are_those_it_began_with_also_where_it_is_called_or_stands_otherwise(
    name: str,
) -> None:
    def now(workflow: Workflow) -> Any:
        team = workflow.parallel("team")
        team.agent(name=name, each=lambda view: ["x", "y"])(lambda ctx, item: item)
        return team

    loose = fanned(name, ["x", "y"])
    with opened() as service:
        for number, then in enumerate((now, loose)):
            with pytest.raises(AgentFailedError):
                run(ending(fanned("old", ["a", "b"]), fails=True), service, f"WF-{number}")
            result = run(ending(then, of=name), service, f"WF-{number}", renamed={"old": name})
            assert result.value == ["a", "b"] and result.ran == 1


def test_a_fan_out_that_is_under_way_is_needed_whatever_its_condition_says_later() -> None:
    wanted = [True]
    workflow = Workflow("items")

    @workflow.agent(each=lambda view: ["a", "b", "c"], key=str, when=lambda view: wanted[0], concurrency=1)
    def work(ctx: Context, item: str) -> str:
        if item == "b" and wanted[0]:
            raise RuntimeError("broken")
        return item

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(workflow, service)
        wanted[0] = False
        assert run(workflow, service).value == ["a", "b", "c"]
