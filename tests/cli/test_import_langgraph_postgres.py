"""`holdfast import langgraph-postgres`: out of a real database, and into one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.types import Command

from holdfast.integrations.langgraph import HoldfastSaver
from tests.adapters.postgres import server
from tests.cli.conftest import Run
from tests.cli.test_import_langgraph_sqlite import OLD, continued, graph

_numbers = itertools.count(1)


def new_database() -> str:
    name = f"agents_{next(_numbers)}"
    host = server.parameters()["host"]
    with psycopg.connect(f"postgresql://postgres@/postgres?host={host}", autocommit=True) as connection:
        connection.execute(f"create database {name}")
    return f"postgresql://postgres@/{name}?host={host}"


@pytest.fixture
def source() -> Iterator[str]:
    """A database of a PostgresSaver's, with two threads that wait for an answer."""
    url = new_database()
    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        for thread in ("one", "two"):
            graph(saver).invoke(
                {"messages": [HumanMessage("hi")]}, {"configurable": {"thread_id": thread}}, durability="sync"
            )
    yield url


def test_what_is_brought_over_can_be_continued(run: Run, source: str):
    store = server.url()
    result = run("import", "langgraph-postgres", source, "--store", store, "--json")
    assert result.exit_code == 0, result.err
    assert result.data == {"threads": 2, "checkpoints": 10, "writes": 16, "dry_run": False}
    with HoldfastSaver.open(store) as saver, PostgresSaver.from_conn_string(source) as old:
        for was in old.list(None):
            now = saver.get_tuple(was.config)
            assert now is not None and now.pending_writes == was.pending_writes
            assert now.checkpoint["channel_values"] == was.checkpoint["channel_values"]
        config = {"configurable": {"thread_id": "two"}}
        assert graph(saver).invoke(Command(resume="yes"), config)["answer"] == "yes"


def test_nothing_is_written_to_the_source(run: Run, source: str, tmp_path: Path):
    run("import", "langgraph-postgres", source, "--store", tmp_path / "store", "--dry-run")
    with psycopg.connect(source) as connection:
        (count,) = connection.execute("select count(*) from checkpoints").fetchone() or (0,)
    assert count == 10


def test_a_database_that_is_none_of_the_savers_is_told(run: Run, tmp_path: Path):
    host = server.parameters()["host"]
    url = f"postgresql://postgres@/postgres?host={host}"
    result = run("import", "langgraph-postgres", url, "--store", tmp_path / "store")
    assert result.exit_code == 13
    assert "no checkpoints of LangGraph" in result.err and "Traceback" not in result.err
    assert not (tmp_path / "store").exists()


def test_what_an_older_langgraph_wrote_is_brought_over_and_continued(run: Run, tmp_path: Path):
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute((OLD / "checkpoints.sql").read_bytes())
    result = run("import", "langgraph-postgres", url, "--store", tmp_path / "store", "--json")
    assert result.exit_code == 0, result.err
    assert result.data == {"threads": 2, "checkpoints": 12, "writes": 20, "dry_run": False}
    assert continued(str(tmp_path / "store")) == ["hi", "hello", "low"]
    with psycopg.connect(url) as connection:
        columns = connection.execute("select * from checkpoint_writes").description or []
    assert "task_path" not in [column.name for column in columns]
