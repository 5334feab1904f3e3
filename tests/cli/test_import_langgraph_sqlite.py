"""`holdfast import`: checkpoints of LangGraph's own savers, read, brought over and compared."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from holdfast.integrations.langgraph import HoldfastSaver
from tests.cli.conftest import Run


class Chat(TypedDict):
    messages: Annotated[list[Any], add_messages]
    answer: str


def greet(state: Chat) -> dict[str, Any]:
    return {"messages": [AIMessage("hello")]}


def ask(state: Chat) -> dict[str, Any]:
    return {"answer": interrupt("really?")}


def graph(saver: Any) -> Any:
    """An agent that greets and then asks, in a subgraph."""
    inner = StateGraph(Chat).add_node("ask", ask).add_edge(START, "ask").add_edge("ask", END)
    outer = StateGraph(Chat).add_node("greet", greet).add_node("inner", inner.compile())
    outer.add_edge(START, "greet").add_edge("greet", "inner").add_edge("inner", END)
    return outer.compile(checkpointer=saver)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoints.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        for thread in ("one", "two"):
            config = {"configurable": {"thread_id": thread}}
            graph(saver).invoke({"messages": [HumanMessage("hi")]}, config)
    return path


def test_what_is_brought_over_is_counted_and_can_be_continued(run: Run, source: Path, tmp_path: Path):
    before = source.read_bytes()
    result = run("import", "langgraph-sqlite", source, "--store", tmp_path / "store")
    assert result.exit_code == 0
    assert (
        result.err
        == "10 checkpoints of 2 threads, 16 pending writes: brought over, each read back and compared.\n"
    )
    assert source.read_bytes() == before
    with HoldfastSaver.open(str(tmp_path / "store")) as saver:
        config = {"configurable": {"thread_id": "one"}}
        assert graph(saver).get_state(config).next == ("inner",)
        assert graph(saver).invoke(Command(resume="yes"), config)["answer"] == "yes"


def test_every_checkpoint_is_what_it_was(run: Run, source: Path, tmp_path: Path):
    run("import", "langgraph-sqlite", source, "--store", tmp_path / "store")
    with (
        SqliteSaver.from_conn_string(str(source)) as old,
        HoldfastSaver.open(str(tmp_path / "store")) as new,
    ):
        for was in old.list(None):
            now = new.get_tuple(was.config)
            assert now is not None
            assert now.parent_config == was.parent_config and now.metadata == was.metadata
            assert now.pending_writes == was.pending_writes
            assert now.checkpoint == {**was.checkpoint}


def test_again_it_adds_only_what_is_new(run: Run, source: Path, tmp_path: Path):
    store = tmp_path / "store"
    first = run("import", "langgraph-sqlite", source, "--store", store, "--thread", "one", "--json")
    assert first.data == {"threads": 1, "checkpoints": 5, "writes": 8, "dry_run": False}
    again = run("import", "langgraph-sqlite", source, "--store", store, "--json")
    assert again.data == {"threads": 2, "checkpoints": 10, "writes": 16, "dry_run": False}
    with HoldfastSaver.open(str(store)) as saver:
        assert len(list(saver.list(None))) == 10


def test_a_dry_run_makes_no_store(run: Run, source: Path, tmp_path: Path):
    result = run("import", "langgraph-sqlite", source, "--store", tmp_path / "store", "--dry-run")
    assert result.exit_code == 0 and "would be brought over" in result.err
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("content", [None, b"no database", b""], ids=["absent", "garbage", "empty"])
def test_what_is_no_database_of_the_savers_is_told(run: Run, tmp_path: Path, content: bytes | None):
    path = tmp_path / "x.db"
    if content is not None:
        path.write_bytes(content)
    result = run("import", "langgraph-sqlite", path, "--store", tmp_path / "store")
    assert result.exit_code == 13
    assert "no such file" in result.err if content is None else "no checkpoints of LangGraph" in result.err


PROGRAM = """
from dataclasses import dataclass

@dataclass
class Reef:
    depth: int
"""


@pytest.fixture
def with_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file of a saver whose channel holds an object of a class of the application's."""
    (tmp_path / "reef_types.py").write_text(PROGRAM)
    monkeypatch.syspath_prepend(str(tmp_path))
    reef = import_module("reef_types").Reef(7)
    path = tmp_path / "typed.db"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        checkpoint: Any = {
            "v": 4,
            "id": "1efd3b9b-0000-6000-8000-000000000001",
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": {"reef": reef},
            "channel_versions": {"reef": "1"},
            "versions_seen": {},
            "updated_channels": None,
        }
        place: Any = {"configurable": {"thread_id": "one", "checkpoint_ns": ""}}
        saver.put(place, checkpoint, {"source": "loop", "step": 0, "parents": {}}, {"reef": "1"})
    yield path
    sys.modules.pop("reef_types", None)


def test_a_class_that_was_not_named_is_refused_by_name(run: Run, with_class: Path, tmp_path: Path):
    result = run("import", "langgraph-sqlite", with_class, "--store", tmp_path / "store")
    assert result.exit_code == 1
    assert "--type reef_types:Reef" in result.err
    assert not list((tmp_path / "store").glob("checkpoints/*"))


def test_a_class_that_was_named_comes_over(run: Run, with_class: Path, tmp_path: Path):
    named = ("--type", "reef_types:Reef")
    result = run("import", "langgraph-sqlite", with_class, "--store", tmp_path / "store", *named)
    assert result.exit_code == 0
    reef_class = import_module("reef_types").Reef

    with HoldfastSaver.open(str(tmp_path / "store"), types=[reef_class]) as saver:
        (found,) = saver.list(None)
        assert found.checkpoint["channel_values"] == {"reef": reef_class(7)}


def test_a_file_of_before_task_paths_is_read(run: Run, source: Path, tmp_path: Path):
    with sqlite3.connect(source) as connection:
        connection.execute("alter table writes drop column task_path")
    connection.close()
    result = run("import", "langgraph-sqlite", source, "--store", tmp_path / "store", "--json")
    assert result.data["checkpoints"] == 10


OLD = Path(__file__).parents[1] / "fixtures" / "langgraph_0_2"


def look(state: Chat) -> dict[str, Any]:
    return {"messages": [ToolMessage("low", tool_call_id="call-1")]}


def old_graph(saver: Any) -> Any:
    """The agent of the fixture, as a program of today."""
    inner = StateGraph(Chat).add_node("ask", ask).add_edge(START, "ask").add_edge("ask", END)
    outer = (
        StateGraph(Chat).add_node("greet", greet).add_node("look", look).add_node("inner", inner.compile())
    )
    outer.add_edge(START, "greet").add_edge("greet", "look").add_edge("look", "inner").add_edge("inner", END)
    return outer.compile(checkpointer=saver)


def continued(store: str) -> list[str]:
    """Answer the question that a thread of the fixture waits with, and give its messages."""
    with HoldfastSaver.open(store) as saver:
        config = {"configurable": {"thread_id": "one"}}
        assert old_graph(saver).get_state(config).next == ("inner",)
        end = old_graph(saver).invoke(Command(resume="yes"), config)
        assert end["answer"] == "yes"
        return [message.content for message in end["messages"]]


def test_what_an_older_langgraph_wrote_is_brought_over_and_continued(run: Run, tmp_path: Path):
    result = run(
        "import", "langgraph-sqlite", OLD / "checkpoints.db", "--store", tmp_path / "store", "--json"
    )
    assert result.exit_code == 0, result.err
    assert result.data == {"threads": 2, "checkpoints": 12, "writes": 20, "dry_run": False}
    assert continued(str(tmp_path / "store")) == ["hi", "hello", "low"]
