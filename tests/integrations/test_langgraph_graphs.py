"""Real graphs over the saver do what they do over LangGraph's own, on every store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, StateSnapshot

from holdfast.integrations.langgraph import HoldfastSaver
from tests.integrations.langgraph_graphs import agent, asked, counter, whole_agent
from tests.integrations.langgraph_stores import KINDS, url_of

DURABILITIES = ("sync", "async", "exit")
ALL_DONE = ["think 1", "act 2", "think 3", "review", "draft", "check", "part 0", "part 1", "part 2", "sum"]
T: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture(params=KINDS)
def saver(request: pytest.FixtureRequest, tmp_path: Path):
    with HoldfastSaver.open(url_of(request.param, tmp_path)) as opened:
        yield opened


def told_of(snapshot: StateSnapshot) -> Any:
    """Answer what is the same in every run: no ids, no times."""
    metadata: Any = snapshot.metadata or {}
    asking = [question.value for question in snapshot.interrupts]
    tasks = [(task.name, task.error, task.result) for task in snapshot.tasks]
    return snapshot.values, snapshot.next, metadata.get("source"), metadata.get("step"), asking, tasks


def history(graph: Any, config: Any = T) -> list[Any]:
    return [told_of(snapshot) for snapshot in graph.get_state_history(config)]


def talk_through(saver: Any, durability: Any, *, inner: bool | None = None) -> tuple[list[str], Any, Any]:
    ran: list[str] = []
    graph = whole_agent(ran.append, inner_checkpointer=inner).compile(checkpointer=saver)
    first = graph.invoke(asked(), T, durability=durability)
    assert [question.value["question"] for question in first["__interrupt__"]] == ["review"]
    graph.invoke(Command(resume="yes"), T, durability=durability)
    inside: Any = graph.get_state(T, subgraphs=True).tasks[0].state
    assert inside.values["done"][-1] == "draft" and inside.next == ("check",)
    last = graph.invoke(Command(resume="fine"), T, durability=durability)
    assert last["approved"] == "check: fine" and last["parts"] == [0, 1, 4]
    return ran, last, graph


@pytest.mark.parametrize("inner", [None, True])
@pytest.mark.parametrize("durability", DURABILITIES)
def test_an_agent_with_tools_questions_graphs_inside_and_branches_goes_as_over_theirs(
    saver, durability, inner
):
    ran, last, graph = talk_through(saver, durability, inner=inner)
    theirs_ran, theirs_last, theirs = talk_through(InMemorySaver(), durability, inner=inner)
    assert sorted(ran) == sorted(theirs_ran) == sorted(ALL_DONE)
    assert last == theirs_last and last["messages"][-1].content == "5 in all"
    tool = next(message for message in last["messages"] if isinstance(message, ToolMessage))
    assert tool.artifact == {"factors": [1, 6]}
    assert history(graph) == history(theirs)


def test_an_agent_goes_on_in_another_process_between_any_two_questions(tmp_path):
    for kind in ("file", "sqlite", "postgres"):
        url = url_of(kind, tmp_path)
        orders: list[Any] = [asked(), Command(resume="yes"), Command(resume="fine")]
        for order in orders:
            with HoldfastSaver.open(url) as saver:
                last = whole_agent().compile(checkpointer=saver).invoke(order, T, durability="sync")
        assert last["done"] == ALL_DONE and last["approved"] == "check: fine"


def test_a_talk_of_many_turns_remembers_each(saver):
    graph = agent().compile(checkpointer=saver)
    for turn in range(4):
        last = graph.invoke(asked(f"turn {turn}"), T)
    assert [message.content for message in last["messages"] if message.type == "human"] == [
        f"turn {turn}" for turn in range(4)
    ]
    assert len(last["messages"]) == 16


# -- time travel ---------------------------------------------------------------------------------------


def travel(saver: Any) -> Any:
    graph = counter().compile(checkpointer=saver)
    graph.invoke({"items": ["begin"]}, T)
    past = list(graph.get_state_history(T))
    middle = next(snapshot for snapshot in past if snapshot.next == ("step2",))
    again = graph.invoke(None, middle.config)
    forked = graph.update_state(middle.config, {"items": ["edited"]}, as_node="step1")
    other = graph.invoke(None, forked)
    graph.update_state(T, {"items": ["afterwards"]})
    appended = graph.invoke({"items": ["more"]}, T)
    return graph, [again, other, appended, graph.get_state(middle.config).values]


def test_a_run_from_the_past_and_an_edited_past_are_branches_as_over_theirs(saver):
    graph, outcomes = travel(saver)
    theirs, theirs_outcomes = travel(InMemorySaver())
    assert outcomes == theirs_outcomes
    assert outcomes[1] == {"items": ["begin", "step1", "edited", "step2", "step3"]}
    assert history(graph) == history(theirs)


def test_the_past_stays_as_it_was_when_a_branch_is_made(saver):
    graph = counter().compile(checkpointer=saver)
    graph.invoke({"items": ["begin"]}, T)
    before = {snapshot.config["configurable"]["checkpoint_id"]: told_of(snapshot) for snapshot in past(graph)}
    for snapshot in past(graph):
        if snapshot.next:
            graph.invoke(None, snapshot.config)
    after = {snapshot.config["configurable"]["checkpoint_id"]: told_of(snapshot) for snapshot in past(graph)}
    # What tasks came to is told from the writes, which a run from there may add to.
    assert {key: value[:4] for key, value in before.items()} == {key: after[key][:4] for key in before}


def past(graph: Any) -> list[StateSnapshot]:
    return list(graph.get_state_history(T))


def test_history_is_filtered_and_bounded_as_over_theirs(saver):
    graph, theirs = (counter(5).compile(checkpointer=one) for one in (saver, InMemorySaver()))
    for one in (graph, theirs):
        one.invoke({"items": ["begin"]}, T)
    for asked_for in ({"limit": 2}, {"filter": {"source": "input"}}, {"filter": {"step": 3}, "limit": 1}):
        assert [told_of(s) for s in graph.get_state_history(T, **asked_for)] == [
            told_of(s) for s in theirs.get_state_history(T, **asked_for)
        ]
    bound = past(graph)[2].config
    assert len(list(graph.get_state_history(T, before=bound))) == len(past(graph)) - 3


def test_bulk_updates_are_steps_of_their_own(saver):
    graph = counter().compile(checkpointer=saver)
    graph.invoke({"items": ["begin"]}, T)
    graph.update_state(T, {"items": ["a"]}, as_node="step1")
    graph.update_state(T, {"items": ["b"]}, as_node="step3")
    assert graph.get_state(T).values["items"][-2:] == ["a", "b"]
    assert graph.get_state(T).next == ()


# -- failing and going on ------------------------------------------------------------------------------


def test_what_branches_did_before_one_failed_is_not_done_again(saver):
    ran: list[str] = []

    def told(name: str) -> None:
        ran.append(name)
        if name == "part 1" and ran.count(name) == 1:
            raise OSError("the line is down")

    graph = whole_agent(told).compile(checkpointer=saver)
    graph.invoke(asked(), T, durability="sync")
    graph.invoke(Command(resume="yes"), T, durability="sync")
    with pytest.raises(OSError, match="line is down"):
        graph.invoke(Command(resume="fine"), T, durability="sync")
    finished = [name for name in ("part 0", "part 2") if name in str(graph.get_state(T).tasks)]
    last = graph.invoke(None, T, durability="sync")
    assert last["parts"] == [0, 1, 4]
    assert ran.count("part 1") == 2 and all(ran.count(name) == 1 for name in finished)


def test_each_run_of_exit_durability_is_one_checkpoint(saver):
    graph = counter().compile(checkpointer=saver)
    for number in range(3):
        graph.invoke({"items": [number]}, T, durability="exit")
    assert len(list(saver.list({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}))) == 3
    assert graph.get_state(T).values["items"][0::4] == [0, 1, 2]


# -- coroutines ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_of_coroutines_goes_as_one_of_functions(kind: str, durability: Any, tmp_path):
    async def talk() -> Any:
        async with HoldfastSaver.open_async(url_of(kind, tmp_path)) as saver:
            graph = whole_agent().compile(checkpointer=saver)
            await graph.ainvoke(asked(), T, durability=durability)
            await graph.ainvoke(Command(resume="yes"), T, durability=durability)
            chunks = [
                chunk
                async for chunk in graph.astream(
                    Command(resume="fine"), T, durability=durability, stream_mode="updates", subgraphs=True
                )
            ]
            assert any("sum" in chunk for _, chunk in chunks)
            assert len([item async for item in graph.aget_state_history(T)]) > 2
            await graph.aupdate_state(T, {"approved": "later"})
            return await graph.aget_state(T)

    last = asyncio.run(talk())
    assert last.values["done"] == ALL_DONE and last.values["approved"] == "later"


def test_many_talks_of_coroutines_at_once_do_not_mix(tmp_path):
    async def talks() -> list[Any]:
        async with HoldfastSaver.open_async(url_of("sqlite", tmp_path)) as saver:
            graph = counter().compile(checkpointer=saver)
            return await asyncio.gather(
                *(graph.ainvoke({"items": [n]}, {"configurable": {"thread_id": str(n)}}) for n in range(8))
            )

    assert asyncio.run(talks()) == [{"items": [n, "step1", "step2", "step3"]} for n in range(8)]
