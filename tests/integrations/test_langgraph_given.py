"""What a run was given stands in its checkpoint; writes that say it again refer to that, and read as ever."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from holdfast.domain.errors import CheckpointSchemaError
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.integrations.langgraph_given import GIVEN, packed_members, told_as_given
from tests.integrations.langgraph_stores import KINDS, LASTING, config_of, got, put, url_of

LONG = "a question that is long enough to be worth looking for. " * 20


class Chat(TypedDict):
    messages: Annotated[list[Any], add_messages]
    topic: str
    seen: list[str]


def chat() -> Any:
    graph = StateGraph(Chat)
    graph.add_node("answer", lambda _: {"messages": [AIMessage("short")]})
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph


def talk(saver: HoldfastSaver, turns: int) -> None:
    app = chat().compile(checkpointer=saver)
    for turn in range(turns):
        given = {
            "messages": [HumanMessage(f"{turn} {LONG}", id=str(turn))],
            "topic": f"{turn} {LONG}",
            "seen": [LONG],
        }
        app.invoke(given, config_of("t"), durability="sync")


def told(saver: HoldfastSaver) -> list[Any]:
    """Answer the writes as the journal tells them."""
    events = saver._service.events("langgraph/t")
    return [write for event in events for write in event.data.get("writes", ())]


def writes_on(saver: HoldfastSaver, config: Any) -> list[Any]:
    """Answer the writes on a checkpoint."""
    return list(got(saver, config).pending_writes or ())


def inputs(saver: HoldfastSaver) -> list[Any]:
    """Answer the checkpoints that runs began with, the oldest first."""
    return [item for item in saver.list(config_of("t")) if item.metadata["source"] == "input"][::-1]


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_run_was_given_is_told_once_and_comes_back_as_a_write(kind: str, tmp_path: Path):
    url = url_of(kind, tmp_path)
    with HoldfastSaver.open(url) as saver:
        talk(saver, 3)
        # Before the first turn no channel has a value.
        assert [list(write[1]) for write in told(saver) if write[2] == GIVEN] == [
            *([name] for _ in range(2) for name in ("messages", "topic", "seen"))
        ]
        check(saver)
    if kind in LASTING:
        with HoldfastSaver.open(url) as again:
            check(again)


def check(saver: HoldfastSaver) -> None:
    found = inputs(saver)
    assert len(found) == 3
    for turn, item in enumerate(found):
        for tuple_ in (item, got(saver, item.config)):
            writes = {channel: value for _, channel, value in tuple_.pending_writes or ()}
            given = tuple_.checkpoint["channel_values"]["__start__"]
            assert writes["messages"] == given["messages"] == [HumanMessage(f"{turn} {LONG}", id=str(turn))]
            assert type(writes["messages"][0]) is HumanMessage
            assert writes["topic"] == given["topic"] and writes["seen"] == given["seen"] == [LONG]
            # Each is the caller's own.
            assert writes["seen"] is not given["seen"] and writes["messages"][0] is not given["messages"][0]


def test_a_run_goes_on_from_what_it_was_given():
    with HoldfastSaver.open("memory:") as saver:
        talk(saver, 2)
        app = chat().compile(checkpointer=saver)
        before = app.get_state(config_of("t")).values
        last = app.invoke(None, inputs(saver)[-1].config, durability="sync")
        assert [message.content for message in last["messages"]] == [m.content for m in before["messages"]]


def test_a_copied_thread_has_the_same_writes_and_a_pruned_one_its_own():
    with HoldfastSaver.open("memory:") as saver:
        talk(saver, 2)
        expected = [
            (item.config["configurable"]["checkpoint_id"], item.pending_writes) for item in inputs(saver)
        ]
        saver.copy_thread("t", "other")
        copied = [item for item in saver.list(config_of("other")) if item.metadata["source"] == "input"][::-1]
        assert [(i.config["configurable"]["checkpoint_id"], i.pending_writes) for i in copied] == expected
        config = put(saver, config_of("t"), {"__start__": {"topic": LONG}, "topic": "old"}, 9)
        saver.put_writes(config, [("topic", LONG)], "task")
        assert told(saver)[-1] == [0, {"topic": None}, GIVEN]
        saver.prune(["t"])
        assert got(saver, config_of("t")).pending_writes == [("task", "topic", LONG)]


@pytest.mark.parametrize("ns", ["", "child:1", "token:1"])
def test_what_is_not_just_the_same_is_told_as_it_is(ns: str):
    with HoldfastSaver.open("memory:") as saver:
        ones = [1] * 1000
        given = {"ones": ones, "text": LONG, "short": "x", "tuple": (LONG,), "new": LONG}
        names = dict.fromkeys(("ones", "text", "short", "tuple"), 0)
        config = put(saver, config_of("t", ns), {"__start__": given, **names})
        writes: list[tuple[str, Any]] = [
            ("ones", [True] * 1000),
            ("text", LONG),
            ("short", "x"),
            ("tuple", (LONG,)),
            ("new", LONG),
            ("other", LONG),
        ]
        saver.put_writes(config, writes, "task")
        assert [write[2] == GIVEN for write in told(saver)] == [False, True, False, False, False, False]
        again = HoldfastSaver(saver._service)
        assert [(c, v) for _, c, v in writes_on(again, config)] == writes
        assert type(writes_on(again, config)[0][2][0]) is bool


def test_a_message_that_got_its_id_in_between_is_told_with_it():
    with HoldfastSaver.open("memory:") as saver:
        message = HumanMessage(LONG)
        config = put(saver, config_of("t"), {"__start__": {"messages": [message]}, "messages": []})
        message.id = "given later"
        saver.put_writes(config, [("messages", [message])], "task")
        assert told(saver) == [[0, {"messages": ["given later"]}, GIVEN]]
        for one in (saver, HoldfastSaver(saver._service)):
            [(_, _, [found])] = writes_on(one, config)
            assert type(found) is HumanMessage and (found.content, found.id) == (LONG, "given later")
            [kept] = got(one, config).checkpoint["channel_values"]["__start__"]["messages"]
            assert (kept.content, kept.id) == (LONG, None)


def test_a_message_that_was_changed_in_between_is_told_as_it_is():
    with HoldfastSaver.open("memory:") as saver:
        message = HumanMessage(LONG)
        config = put(saver, config_of("t"), {"__start__": {"messages": [message]}, "messages": []})
        message.content = f"more than that: {LONG}"
        saver.put_writes(config, [("messages", [message])], "task")
        [(_, _, [found])] = writes_on(saver, config)
        assert found.content == message.content
        [kept] = got(saver, config).checkpoint["channel_values"]["__start__"]["messages"]
        assert kept.content == LONG


@pytest.mark.parametrize("ids", [["one", "two"], "hidden", [], 7])
def test_ids_that_are_not_of_these_messages_are_refused(ids: Any):
    with HoldfastSaver.open("memory:") as saver:
        given = {"__start__": {"messages": [HumanMessage(LONG)]}, "messages": []}
        config = put(saver, config_of("t"), given)
        forge(saver, config, {"messages": ids})
        with pytest.raises(CheckpointSchemaError, match="does not hold"):
            got(HoldfastSaver(saver._service), config)


def forge(saver: HoldfastSaver, config: Any, value: dict[str, Any]) -> None:
    """Record a write that says what nobody gave."""
    place: Any = {"id": config["configurable"]["checkpoint_id"], "task": "task"}
    saver._service.append_event("langgraph/t", "LANGGRAPH_WRITES", {**place, "writes": [[0, value, GIVEN]]})


def test_writes_of_delta_channels_are_told_whole():
    given = packed_members({"log": [LONG]}, None)[1]
    write = [0, "log", [LONG], None]
    counters = {"counters_since_delta_snapshot": {"log": [1, 1]}}
    assert told_as_given([write], given, ["log"], {}) == [[0, "log", None, GIVEN]]
    assert told_as_given([write], given, ["log"], counters) == [write]
    assert told_as_given([write], given, [], {}) == [write]


def test_a_reference_to_what_is_not_there_is_refused():
    with HoldfastSaver.open("memory:") as saver:
        config = put(saver, config_of("t"), {"topic": "x"})
        forge(saver, config, {"topic": None})
        with pytest.raises(CheckpointSchemaError, match="does not hold"):
            got(HoldfastSaver(saver._service), config)


def test_the_history_of_a_channel_has_what_its_writes_refer_to():
    with HoldfastSaver.open("memory:") as saver:
        config = put(saver, config_of("t"), {"__start__": {"topic": LONG}, "topic": "old"})
        saver.put_writes(config, [("topic", LONG)], "task")
        assert told(saver)[-1][2] == GIVEN
        newest = put(saver, config, {"other": 1}, 2)
        found = saver.get_delta_channel_history(config=newest, channels=["topic"])
        assert found == {"topic": {"writes": [("task", "topic", LONG)], "seed": "old"}}
