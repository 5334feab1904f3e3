"""Whole threads: pruning gives space back and loses nothing that delta channels need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from holdfast.adapters.memory import MemoryStore
from holdfast.application.recording import Recording
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.integrations.langgraph import HoldfastSaver
from tests.application.services import make_service
from tests.integrations.langgraph_graphs import counter, delta_counter
from tests.integrations.langgraph_stores import (
    KINDS,
    LASTING,
    checkpoint_of,
    config_of,
    metadata_of,
    put,
    stored_bytes,
    url_of,
)

STEPS = ["step1", "step2", "step3"]


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def turns(*begins: Any) -> list[Any]:
    return [item for begin in begins for item in (begin, *STEPS)]


@pytest.fixture(params=KINDS)
def saver(request: pytest.FixtureRequest, tmp_path: Path):
    with HoldfastSaver.open(url_of(request.param, tmp_path)) as opened:
        yield opened


# -- delta channels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("frequency", [1, 2, 3, 100])
def test_a_delta_channel_is_rebuilt_at_every_point_of_its_history(saver, frequency: int):
    graph, theirs = (delta_counter(frequency).compile(checkpointer=one) for one in (saver, InMemorySaver()))
    for one in (graph, theirs):
        for number in range(3):
            last = one.invoke({"items": [number]}, thread("t"))
        assert last["items"] == turns(0, 1, 2)
    mine, others = (
        [(s.values, s.next) for s in one.get_state_history(thread("t"))] for one in (graph, theirs)
    )
    assert mine == others and len(mine) == 15


@pytest.mark.parametrize("frequency", [2, 100])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_delta_channel_is_whole_after_pruning_again_and_again(saver, frequency: int, durability: Any):
    graph = delta_counter(frequency).compile(checkpointer=saver)
    for number in range(3):
        graph.invoke({"items": [number]}, thread("t"), durability=durability)
        saver.prune(["t"])
        assert graph.get_state(thread("t")).values["items"] == turns(*range(number + 1))
        assert len(list(saver.list(thread("t")))) == 1


@pytest.mark.parametrize("frequency", [2, 100])
def test_a_branch_of_a_delta_channel_has_nothing_of_the_other(saver, frequency: int):
    graph = delta_counter(frequency).compile(checkpointer=saver)
    graph.invoke({"items": ["begin"]}, thread("t"))
    before = next(s for s in graph.get_state_history(thread("t")) if s.next == ("step2",))
    left = graph.invoke(None, graph.update_state(before.config, {"items": ["left"]}, as_node="step1"))
    right = graph.invoke(None, graph.update_state(before.config, {"items": ["right"]}, as_node="step1"))
    assert left["items"] == ["begin", "step1", "left", "step2", "step3"]
    assert right["items"] == ["begin", "step1", "right", "step2", "step3"]
    saver.prune(["t"])
    assert graph.get_state(thread("t")).values == right
    graph.update_state(thread("t"), {"items": ["after"]})
    assert graph.get_state(thread("t")).values["items"] == [*right["items"], "after"]


@pytest.mark.parametrize("frequency", [2, 100])
def test_a_copy_of_a_delta_channel_is_whole_pruned_before_or_after(saver, frequency: int):
    graph = delta_counter(frequency).compile(checkpointer=saver)
    for number in range(2):
        graph.invoke({"items": [number]}, thread("t"))
    saver.copy_thread("t", "whole")
    saver.prune(["t"])
    saver.copy_thread("t", "pruned")
    saver.prune(["whole"])
    saver.delete_thread("t")
    for name in ("whole", "pruned"):
        assert graph.get_state(thread(name)).values["items"] == turns(0, 1)
        assert graph.invoke({"items": [2]}, thread(name))["items"] == turns(0, 1, 2)


def test_removing_a_run_leaves_what_later_ones_of_a_delta_channel_need(saver):
    graph = delta_counter(100).compile(checkpointer=saver)
    for number in range(3):
        config: Any = {**thread("t"), "metadata": {"run_id": f"run-{number}"}}
        graph.invoke({"items": [number]}, config)
    saver.delete_for_runs(["run-0"])
    assert graph.get_state(thread("t")).values["items"] == turns(0, 1, 2)
    assert {item.metadata["run_id"][-1] for item in saver.list(thread("t"))} == {"1", "2"}


@pytest.mark.parametrize("kind", LASTING)
def test_a_pruned_delta_channel_is_whole_in_another_process(kind: str, tmp_path):
    url = url_of(kind, tmp_path)
    with HoldfastSaver.open(url) as saver:
        delta_counter(100).compile(checkpointer=saver).invoke({"items": [0]}, thread("t"))
        saver.prune(["t"])
    with HoldfastSaver.open(url) as saver:
        graph = delta_counter(100).compile(checkpointer=saver)
        assert graph.get_state(thread("t")).values["items"] == turns(0)
        assert graph.invoke({"items": [1]}, thread("t"))["items"] == turns(0, 1)


def test_a_delta_channel_whose_past_is_gone_is_told_and_not_empty(saver):
    graph = delta_counter(100).compile(checkpointer=saver)
    for number in range(2):
        graph.invoke({"items": [number]}, thread("t"))
    recording = saver._service.recording
    newest = max(item.metadata["step"] for item in saver.list(thread("t")))
    assert newest == 8
    # As a retention policy would that knows nothing of LangGraph.
    recording.keep_only("langgraph/t", [10])
    with pytest.raises(CheckpointNotFoundError, match="saver's own `prune`"):
        graph.get_state(thread("t"))


def test_the_history_of_a_channel_is_its_writes_since_the_nearest_value(saver):
    config = config_of("t")
    for number in range(1, 4):
        values = {"items": ["seed"]} if number == 1 else {}
        checkpoint = checkpoint_of(values, channel_versions={"items": number})
        config = saver.put(config, checkpoint, metadata_of(number), {"items": number})
        saver.put_writes(config, [("items", [number]), ("other", 0)], "task")
    found = saver.get_delta_channel_history(config=config, channels=["items", "none"])
    assert found == {
        "items": {"writes": [("task", "items", [1]), ("task", "items", [2])], "seed": ["seed"]},
        "none": {"writes": []},
    }
    assert saver.get_delta_channel_history(config=config_of("t"), channels=["items"])["items"]["seed"] == [
        "seed"
    ]
    assert saver.get_delta_channel_history(config=config_of("no"), channels=["items"]) == {
        "items": {"writes": []}
    }
    found["items"]["seed"].append("spoilt")
    found["items"]["writes"][0][2].append("spoilt")
    again = saver.get_delta_channel_history(config=config, channels=["items"])["items"]
    assert again == {"writes": [("task", "items", [1]), ("task", "items", [2])], "seed": ["seed"]}


@pytest.mark.parametrize("make", [counter, lambda: delta_counter(100)], ids=["plain", "delta"])
def test_what_another_process_puts_while_a_thread_is_pruned_stays(make: Any, monkeypatch):
    store = MemoryStore()
    mine, other = (HoldfastSaver(make_service(store)) for _ in range(2))
    graph = make().compile(checkpointer=other)
    graph.invoke({"items": [0]}, thread("t"))
    keep_only, turns_left = Recording.keep_only, [1]

    def overtaken(*arguments: Any, **more: Any) -> Any:
        while turns_left:
            graph.invoke({"items": [turns_left.pop()]}, thread("t"))
        return keep_only(*arguments, **more)

    monkeypatch.setattr(Recording, "keep_only", overtaken)
    mine.prune(["t"])
    for saver in (mine, other):
        assert make().compile(checkpointer=saver).get_state(thread("t")).values["items"] == turns(0, 1)


# -- space ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: counter(), lambda: delta_counter(3)], ids=["plain", "delta"])
@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_pruning_gives_the_space_back(kind: str, make: Any, tmp_path):
    url = url_of(kind, tmp_path)
    text = [f"{number:07d}" for number in range(2_000)]
    with HoldfastSaver.open(url, compression="none", warn_bytes=10**9) as saver:
        graph = make().compile(checkpointer=saver)
        for number in range(12):
            graph.invoke({"items": ["".join(reversed(text)) + str(number)]}, thread("t"))
            graph.update_state(thread("t"), {"items": []})
    before = stored_bytes(tmp_path)
    with HoldfastSaver.open(url, compression="none", warn_bytes=10**9) as saver:
        value = make().compile(checkpointer=saver).get_state(thread("t")).values
        saver.prune(["t"])
        assert make().compile(checkpointer=saver).get_state(thread("t")).values == value
    assert stored_bytes(tmp_path) < before


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_deleted_thread_leaves_no_trace_of_what_was_said(kind: str, tmp_path):
    canary = "canary-7c1f" * 20
    url = url_of(kind, tmp_path)
    with HoldfastSaver.open(url, compression="none") as saver:
        at = put(saver, config_of("t"), {"text": canary}, metadata={"user": canary})
        saver.put_writes(at, [("text", canary)], "task")
    assert found_in(tmp_path, canary)
    with HoldfastSaver.open(url, compression="none") as saver:
        saver.delete_thread("t")
    with HoldfastSaver.open(url, compression="none") as saver:
        assert list(saver.list(None)) == []
    assert not found_in(tmp_path, canary)


def found_in(folder: Path, text: str) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_a_copy_of_a_thread_is_about_whom_the_thread_is_about(saver):
    config = config_of("t")
    for number in range(1, 4):
        config = saver.put(config, checkpoint_of({"n": number}), metadata_of(number), {"n": number})
    saver.copy_thread("t", "u")
    service = saver._service
    service.subjects.declare("langgraph/t", "ann")
    assert service.erasure.subject("ann", reason="she asked").workflows == ("langgraph/t", "langgraph/u")
    assert saver.get_tuple(config_of("u")) is None
