"""Eight threads and eight processes, on one conversation and on many: conflicts are told, nothing is lost."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.domain.errors import CheckpointConflictError
from holdfast.integrations import langgraph_recorder
from holdfast.integrations.langgraph import HoldfastSaver
from tests.integrations.langgraph_graphs import Counting, counter
from tests.integrations.langgraph_rivals import crowd, processes
from tests.integrations.langgraph_stores import KINDS, LASTING, url_of

T: Any = {"configurable": {"thread_id": "t"}}


def items(saver: HoldfastSaver, thread_id: str = "t") -> list[str]:
    found = counter(1).compile(checkpointer=saver).get_state({"configurable": {"thread_id": thread_id}})
    return list(found.values["items"])


def check_one(saver: HoldfastSaver, outcomes: list[dict[str, Any]], each: int) -> None:
    """Everything that was acknowledged is there, once; whatever else is there was told as a conflict."""
    acknowledged = [label for outcome in outcomes for label in outcome["acknowledged"]]
    assert len(acknowledged) == each * len(outcomes)
    labels = [item for item in items(saver) if item != "step1"]
    assert set(acknowledged) <= set(labels) and len(labels) == len(set(labels))
    assert len(labels) - len(acknowledged) <= sum(outcome["conflicts"] for outcome in outcomes)
    assert sum(outcome["tries"] - outcome["conflicts"] for outcome in outcomes) == len(acknowledged)
    check_chain(saver)


def check_chain(saver: HoldfastSaver) -> None:
    """No two checkpoints follow the same one: nobody went on from what was not the newest."""
    parents = [
        item.parent_config["configurable"]["checkpoint_id"] for item in saver.list(T) if item.parent_config
    ]
    assert len(parents) == len(set(parents))


@pytest.mark.parametrize("kind", KINDS)
def test_eight_threads_on_one_conversation_lose_nothing(kind: str, tmp_path: Path, campaign: bool):
    each = 6 if campaign else 1
    with HoldfastSaver.open(url_of(kind, tmp_path)) as saver:
        outcomes = crowd(saver, 8, each, lambda _: "t")
        check_one(saver, outcomes, each)
        assert sum(outcome["conflicts"] for outcome in outcomes) > 0


@pytest.mark.parametrize("kind", KINDS)
def test_eight_threads_on_conversations_of_their_own_never_meet(kind: str, tmp_path: Path, campaign: bool):
    each = 50 if campaign else 2
    with HoldfastSaver.open(url_of(kind, tmp_path)) as saver:
        outcomes = crowd(saver, 8, each, str)
        assert [outcome["conflicts"] for outcome in outcomes] == [0] * 8
        for outcome in outcomes:
            number = outcome["acknowledged"][0].partition(".")[0]
            assert items(saver, number) == [
                item for label in outcome["acknowledged"] for item in (label, "step1")
            ]


@pytest.mark.parametrize("kind", LASTING)
def test_eight_processes_on_one_conversation_lose_nothing(kind: str, tmp_path: Path, campaign: bool):
    each, url = 3 if campaign else 1, url_of(kind, tmp_path)
    outcomes = processes(url, tmp_path, 8, each, lambda _: "t")
    with HoldfastSaver.open(url) as saver:
        check_one(saver, outcomes, each)


@pytest.mark.parametrize("kind", LASTING)
def test_eight_processes_on_conversations_of_their_own_never_meet(kind: str, tmp_path: Path, campaign: bool):
    each, url = 30 if campaign else 1, url_of(kind, tmp_path)
    outcomes = processes(url, tmp_path, 8, each, str)
    assert [outcome["conflicts"] for outcome in outcomes] == [0] * 8
    with HoldfastSaver.open(url) as saver:
        assert all(len(items(saver, str(number))) == 2 * each for number in range(8))


# -- two at a time, in a known order --------------------------------------------------------


class Gate:
    """Holds the run that comes first inside of its step, until it is let go."""

    def __init__(self) -> None:
        self.inside, self.free = threading.Event(), threading.Event()
        self._is_first = threading.Lock()

    def pass_through(self, state: Counting) -> Any:
        if self._is_first.acquire(blocking=False):
            self.inside.set()
            assert self.free.wait(60)
        return {"items": ["through"]}


def overtake(saver: HoldfastSaver) -> tuple[Any, Any, Any]:
    """Let a run begin and another go past it; answer how each of them ended, and the graph."""
    gate = Gate()
    told: list[Any] = []
    graph = (
        counter(1).add_node("step2", gate.pass_through).add_edge("step1", "step2").compile(checkpointer=saver)
    )

    def slow() -> None:
        try:
            told.append(graph.invoke({"items": ["slow"]}, T, durability="sync"))
        except CheckpointConflictError as conflict:
            told.append(conflict)

    runner = threading.Thread(target=slow)
    runner.start()
    assert gate.inside.wait(60)
    try:
        fast = graph.invoke({"items": ["fast"]}, T, durability="sync")
    finally:
        gate.free.set()
        runner.join()
    [ended] = told
    return ended, fast, graph


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("kind", ["memory", "file"])
def test_a_run_that_was_overtaken_is_told(kind: str, is_new: bool, tmp_path: Path):
    with HoldfastSaver.open(url_of(kind, tmp_path)) as saver:
        if not is_new:
            counter(1).compile(checkpointer=saver).invoke({"items": ["before"]}, T)
        conflict, fast, graph = overtake(saver)
        assert isinstance(conflict, CheckpointConflictError) and "went on" in str(conflict)
        assert "Run it again" in str(conflict)
        assert graph.get_state(T).values == fast and fast["items"][-3:] == ["fast", "step1", "through"]
        check_chain(saver)


def test_without_the_look_at_the_newest_an_update_is_lost_and_the_harness_goes_red(
    monkeypatch: pytest.MonkeyPatch,
):
    """The negative control."""
    monkeypatch.setattr(langgraph_recorder, "_check_newest", lambda thread, place: None)
    with HoldfastSaver.open("memory:") as saver:
        ended, fast, graph = overtake(saver)
        assert not isinstance(ended, CheckpointConflictError)
        assert "fast" in fast["items"] and "fast" not in graph.get_state(T).values["items"]
        with pytest.raises(AssertionError):
            check_chain(saver)


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("kind", ["memory", "file", "sqlite"])
def test_of_four_runs_at_once_each_is_told_how_it_ended(kind: str, is_new: bool, tmp_path: Path):
    with HoldfastSaver.open(url_of(kind, tmp_path)) as saver:
        graph = counter(2).compile(checkpointer=saver)
        if not is_new:
            graph.invoke({"items": ["before"]}, T)
        start, ended = threading.Barrier(4), dict[int, Any]()

        def run(number: int) -> None:
            start.wait()
            try:
                ended[number] = graph.invoke({"items": [number]}, T)
            except CheckpointConflictError as conflict:
                ended[number] = conflict

        runners = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for runner in runners:
            runner.start()
        for runner in runners:
            runner.join()
        won = [number for number, outcome in ended.items() if not isinstance(outcome, Exception)]
        final = graph.get_state(T).values["items"]
        assert len(ended) == 4 and won
        assert all(number in final for number in won)
        check_chain(saver)


def test_branches_of_one_past_are_no_conflict():
    with HoldfastSaver.open("memory:") as saver:
        graph = counter().compile(checkpointer=saver)
        graph.invoke({"items": ["begin"]}, T)
        middle = next(s for s in graph.get_state_history(T) if s.next == ("step2",))
        answers = [graph.invoke(None, middle.config)["items"] for _ in range(3)]
        assert answers == [["begin", "step1", "step2", "step3"]] * 3
