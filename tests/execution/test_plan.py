"""Stages are layered so that everything comes after what it names, or the plan is refused by name."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import DeclarationError, InvalidIdError
from holdfast.execution.plan import Agent, OnFailure, Plan, Retry, Stage, StageKind, check_name, make_plan


def work(ctx: object) -> None:
    """Do nothing."""


def agent(name: str, stage: str, *after: str, **more) -> Agent:
    return Agent(name, work, stage, after=after, **more)


def stage(name: str, *agents: Agent, after: tuple[str, ...] = (), kind=StageKind.SEQUENTIAL, **more) -> Stage:
    return Stage(name, kind, agents, after, **more)


def planned(*stages: Stage) -> Plan:
    return make_plan("w", {one.name: one for one in stages})


def lone(name: str, *after: str) -> Stage:
    return stage(name, agent(name, name), after=after)


def layers(plan: Plan) -> list[list[str]]:
    return [[one.name for one in layer] for layer in plan.layers]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, Stage]:
    """Draw stages in any order of declaration, each after some that have a smaller number."""
    count = draw(st.integers(0, 8))
    stages = []
    for number in range(count):
        before = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        # By the name of a stage or by that of an agent in it.
        names = [f"s{one}" if draw(st.booleans()) else f"a{one}" for one in sorted(before)]
        by_agent = draw(st.booleans())
        own = agent(f"a{number}", f"s{number}", *(names if by_agent else ()))
        stages.append(stage(f"s{number}", own, after=() if by_agent else tuple(names)))
    return {one.name: one for one in draw(st.permutations(stages))}


@given(graphs())
def test_everything_comes_after_what_it_names(stages: dict[str, Stage]) -> None:
    plan = make_plan("w", stages)
    layer_of = {one.name: number for number, layer in enumerate(plan.layers) for one in layer}
    assert layer_of.keys() == stages.keys()
    assert set(plan.agents) == {f"a{name[1:]}" for name in stages}
    for one in stages.values():
        named = [f"s{name[1:]}" for name in (*one.after, *one.agents[0].after)]
        # In the first layer that it can be in, so that as much as possible is done at once.
        assert layer_of[one.name] == max((layer_of[name] + 1 for name in named), default=0)


@given(graphs(), st.data())
def test_a_circle_is_refused_by_name(stages: dict[str, Stage], data: st.DataObject) -> None:
    if not stages:
        return
    name = data.draw(st.sampled_from(sorted(stages)))
    stages["x"] = lone("x", name)
    stages["y"] = lone("y", "x")
    first = stages[name]
    stages[name] = Stage(first.name, first.kind, first.agents, (*first.after, "y"))
    with pytest.raises(DeclarationError, match="circle") as refused:
        make_plan("w", stages)
    circle = refused.value.message.partition(": ")[2].split(" -> ")
    assert circle[0] == circle[-1] and set(circle) >= {"x", "y", name}


@given(graphs(), st.data())
def test_what_is_not_there_is_refused_by_name(stages: dict[str, Stage], data: st.DataObject) -> None:
    stages["late"] = lone("late", "nowhere")
    with pytest.raises(DeclarationError, match="'late' comes after 'nowhere'"):
        make_plan("w", stages)


def test_something_cannot_come_after_itself() -> None:
    with pytest.raises(DeclarationError, match="a -> a"):
        planned(lone("a", "a"))


def test_stages_of_one_layer_stay_as_they_were_written() -> None:
    assert layers(planned(lone("z"), lone("b", "z"), lone("y", "z"), lone("a"))) == [["z", "a"], ["b", "y"]]


def test_no_stage_at_all_is_a_plan() -> None:
    plan = planned()
    assert (plan.layers, plan.agents) == ((), {})
    assert plan.structure()["stages"] == []


def test_agents_of_a_sequential_stage_may_name_earlier_ones() -> None:
    assert layers(planned(stage("s", agent("a", "s"), agent("b", "s", "a")))) == [["s"]]


@pytest.mark.parametrize(
    ("kind", "agents"),
    [
        (StageKind.PARALLEL, (agent("a", "s"), agent("b", "s", "a"))),
        (StageKind.SEQUENTIAL, (agent("a", "s", "b"), agent("b", "s"))),
        (StageKind.SEQUENTIAL, (agent("a", "s", "a"),)),
        (StageKind.BARRIER, (agent("a", "s", "b"), agent("b", "s"))),
    ],
)
def test_an_order_that_a_stage_does_not_keep_is_refused(kind: StageKind, agents: tuple[Agent, ...]) -> None:
    with pytest.raises(DeclarationError, match="in their stage it does not"):
        planned(stage("s", *agents, kind=kind))


def test_an_agent_cannot_come_after_the_stage_it_stands_in() -> None:
    with pytest.raises(DeclarationError, match="circle: s -> s"):
        planned(stage("s", agent("a", "s", "s")))


@pytest.mark.parametrize("evaluators", [0, 2])
def test_a_loop_has_one_evaluator(evaluators: int) -> None:
    judges = [agent(f"judge{number}", "l", is_evaluator=True) for number in range(evaluators)]
    with pytest.raises(DeclarationError, match="one evaluator"):
        planned(stage("l", agent("draft", "l"), *judges, kind=StageKind.LOOP))


def test_the_structure_is_plain_and_says_what_stands_where() -> None:
    plan = planned(lone("a"), stage("s", agent("b", "s", "a"), after=("a",), kind=StageKind.PARALLEL))
    told = plan.structure()
    assert told["workflow"] == "w"
    assert told["stages"] == [
        {"name": "a", "kind": "sequential", "layer": 0, "after": [], "agents": [{"name": "a", "after": []}]},
        {
            "name": "s",
            "kind": "parallel",
            "layer": 1,
            "after": ["a"],
            "agents": [{"name": "b", "after": ["a"]}],
        },
    ]


@given(graphs())
def test_the_fingerprint_is_that_of_the_graph(stages: dict[str, Stage]) -> None:
    told = make_plan("w", stages).structure()
    assert told["fingerprint"] == make_plan("other", stages).structure()["fingerprint"]
    longer = make_plan("w", {**stages, "more": lone("more")}).structure()
    assert told["fingerprint"] != longer["fingerprint"]


@pytest.mark.parametrize("name", ["plan", "Übersicht", "日本語", "a b", "a.b-c_d"])
def test_names_are_text(name: str) -> None:
    assert check_name("agent", name) == name


@pytest.mark.parametrize("mark", "#[]>/")
def test_marks_of_steps_are_no_part_of_a_name(mark: str) -> None:
    with pytest.raises(DeclarationError, match="holds one of") as refused:
        check_name("agent", f"a{mark}b")
    assert refused.value.place == f"a{mark}b"


@pytest.mark.parametrize("name", ["", " a", "a\nb", "."])
def test_what_is_no_id_is_no_name(name: str) -> None:
    with pytest.raises(InvalidIdError):
        check_name("agent", name)


@given(
    st.integers(1, 10_000),
    st.floats(0, 1e6),
    st.floats(1, 1e9) | st.integers(1, 10**9),
    st.floats(0, 1e6),
)
def test_pauses_grow_and_stay_below_their_limit(attempts, delay, factor, highest) -> None:
    retry = Retry(attempts=3, delay_seconds=delay, factor=factor, delay_max_seconds=highest)
    pause = retry.pause_seconds(attempts)
    assert 0 <= pause <= highest
    assert pause <= retry.pause_seconds(attempts + 1)
    assert retry.pause_seconds(1) == min(delay, highest)


@pytest.mark.parametrize(
    "wrong",
    [
        {"attempts": 0},
        {"delay_seconds": -1},
        {"factor": 0.5},
        {"delay_max_seconds": -1},
        {"delay_seconds": math.nan},
        {"factor": math.nan},
    ],
)
def test_a_retry_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(DeclarationError):
        Retry(**wrong)


def test_only_so_many_tries_and_only_after_some_errors() -> None:
    retry = Retry(attempts=3, on=(OSError,))
    assert [retry.is_worth(ConnectionError(), tries) for tries in (1, 2, 3)] == [True, True, False]
    assert not retry.is_worth(ValueError(), 1)


def test_an_agent_knows_how_it_is_called() -> None:
    async def waits(ctx: object) -> None:
        """Do nothing."""

    assert Agent("a", waits, "s").is_async
    assert not agent("a", "s").is_async
    assert agent("a", "s").on_failure is OnFailure.FAIL


def test_an_agent_is_plain_if_nothing_of_it_needs_the_loop() -> None:
    async def waits(ctx: object) -> None:
        """Do nothing."""

    assert agent("a", "s").is_plain
    needy = (
        Agent("a", waits, "s"),
        replace(agent("a", "s"), when=bool),
        replace(agent("a", "s"), each=lambda view: []),
        replace(agent("a", "s"), timeout_seconds=1.0),
        replace(agent("a", "s"), engine="elsewhere"),
    )
    assert not any(one.is_plain for one in needy)
