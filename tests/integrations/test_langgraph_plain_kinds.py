"""Bytes that may be changed stay so, and who has what cannot be named is told what to do."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from holdfast.domain.errors import UnsupportedTypeError
from holdfast.integrations.langgraph import HoldfastSaver
from tests.integrations.langgraph_stores import LASTING, config_of, got, put, url_of


def check_bytes(values: dict[str, Any]) -> None:
    assert type(values["buffer"]) is bytearray and values["buffer"] == b"x\x00"
    assert [type(item) for item in values["pair"]] == [bytearray, bytes]
    assert type(values["send"].arg) is bytearray


@pytest.mark.parametrize("kind", LASTING)
def test_bytes_that_may_be_changed_come_back_as_such(kind: str, tmp_path: Path):
    url, buffer = url_of(kind, tmp_path), bytearray(b"x\x00")
    given = {"buffer": buffer, "pair": (bytearray(), b"y"), "send": Send("n", bytearray(b"z"))}
    with HoldfastSaver.open(url) as saver, HoldfastSaver.open(url) as reader:
        at = put(saver, config_of("t"), given)
        saver.put_writes(at, list(given.items()), "task")
        buffer.extend(b"changed by who gave it")
        for one in (saver, reader):
            found = got(one, at)
            check_bytes(found.checkpoint["channel_values"])
            check_bytes({channel: value for _, channel, value in found.pending_writes or ()})


class Buffered(TypedDict):
    buffer: bytearray


def test_a_graph_goes_on_with_bytes_that_it_changes():
    def ask(state: Buffered) -> Any:
        interrupt("go on?")
        state["buffer"].extend(b"y")
        return {"buffer": state["buffer"]}

    graph = StateGraph(Buffered)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    with HoldfastSaver.open("memory:") as saver:
        app = graph.compile(checkpointer=saver)
        config: Any = config_of("t")
        app.invoke({"buffer": bytearray(b"x")}, config)
        assert app.invoke(Command(resume=True), config) == {"buffer": bytearray(b"xy")}


class Tags(set[str]):
    pass


@pytest.mark.parametrize("value", [defaultdict(int, a=1), Counter("ab"), OrderedDict(a=1), Tags("a")])
def test_who_has_a_container_of_another_class_is_told_to_give_a_plain_one(value: Any):
    plain = "set" if isinstance(value, set) else "dict"
    with HoldfastSaver.open("memory:") as saver:
        with pytest.raises(UnsupportedTypeError, match=rf"`{plain}\(value\)`"):
            put(saver, config_of("t"), {"odd": value})
        made = set(value) if plain == "set" else dict(value)
        assert got(saver, put(saver, config_of("t"), {"odd": made})).checkpoint["channel_values"] == {
            "odd": made
        }
