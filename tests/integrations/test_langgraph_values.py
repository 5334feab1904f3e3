"""Values of channels come back as what they are, or are refused when they are put."""

from __future__ import annotations

import enum
import sys
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Interrupt, Overwrite, Send
from pydantic import BaseModel

import holdfast
from holdfast.adapters.memory import MemoryStore
from holdfast.domain.errors import CheckpointSchemaError, UnsupportedTypeError
from holdfast.integrations import langgraph_recorder
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.integrations.langgraph_states import draw
from tests.application.services import make_service
from tests.integrations import langgraph_kinds as kinds
from tests.integrations.langgraph_stores import (
    KINDS,
    LASTING,
    channels,
    config_of,
    got,
    id_of,
    put,
    stored_bytes,
    url_of,
)

#: Drawing a state takes longer than storing it.
FEWER = settings(max_examples=max(15, settings().max_examples // 3))


def open_saver(url: str = "memory:", **settings: Any) -> Any:
    return HoldfastSaver.open(url, types=kinds.TYPES, redact=False, **settings)


@FEWER
@given(st.lists(st.dictionaries(st.text(max_size=4), kinds.values(), max_size=3), min_size=1, max_size=4))
def test_every_checkpoint_of_a_thread_comes_back_as_it_was_put(states: list[dict[str, Any]]):
    with open_saver() as saver:
        check_states(saver, saver, states)


@FEWER
@given(st.lists(st.dictionaries(st.sampled_from(["messages", "a"]), kinds.values()), min_size=1, max_size=3))
def test_so_it_does_from_another_saver_that_reads_what_is_stored(states: list[dict[str, Any]]):
    store = MemoryStore()
    # The second remembers nothing of what the first was given.
    writer, reader = (HoldfastSaver(make_service(store, registry(), redact=False)) for _ in range(2))
    check_states(writer, reader, states)


def registry() -> holdfast.TypeRegistry:
    made = holdfast.TypeRegistry()
    for cls in kinds.TYPES:
        made.register(cls)
    return made


def check_states(writer: HoldfastSaver, reader: HoldfastSaver, states: list[dict[str, Any]]) -> None:
    config, put_ids = config_of("t"), []
    for number, state in enumerate(states, start=1):
        config = put(writer, config, state, number)
        writer.put_writes(config, list(state.items()), "task")
        put_ids.append(id_of(config))
    for checkpoint_id, state in zip(put_ids, states, strict=True):
        found = got(reader, config_of("t", checkpoint_id=checkpoint_id))
        assert kinds.shape(found.checkpoint["channel_values"]) == kinds.shape(state)
        written = {channel: value for _, channel, value in found.pending_writes or ()}
        assert {name: kinds.shape(value) for name, value in written.items()} == {
            name: kinds.shape(value) for name, value in state.items()
        }


EVERYTHING = {
    "messages": [
        HumanMessage(
            [{"type": "image_url", "image_url": {"url": kinds.IMAGE}}, {"type": "text", "text": "what?"}]
        ),
        AIMessage("", tool_calls=[{"name": "look", "args": {"at": ["\x00", "\ud800"]}, "id": "1"}]),
        ToolMessage("a cat", tool_call_id="1", artifact={"raw": (1, {2}), "bytes": b"\x00"}),
        HumanMessage("with a field of its own", cached=True),
    ],
    "tuple": (1, (2, [3])),
    "set": {1, 2},
    "order": kinds.Order(1, kinds.Colour.BLUE, ("a",)),
    "customer": kinds.Customer(name="ann"),
    "choices": [kinds.Mood.GLAD, kinds.Level.LOW, kinds.Colour.RED],
    "nul": "a\x00b",
    "surrogate": "a\ud800b",
    "lookalikes": list(kinds.LOOKALIKES),
    "sends": [Send("node", kinds.Order(1)), Send("node", {"text": "\ud800", "n": 2**70})],
    "asked": (Interrupt({"order": kinds.Order(2), "m": HumanMessage("sure?")}, id="i"),),
    "commands": [
        Command(),
        Command(graph=Command.PARENT, update=[("n", {1}), ("m", HumanMessage("x"))], goto="node"),
        Command(resume={"id": (1, 2)}, goto=("a", Send("b", kinds.Order(3)))),
        Send("node", {"x": Command(resume=1, goto=[])}),
    ],
    "numbers": [1, True, 1.0, -0.0, float("inf"), 2**80],
}


@pytest.mark.parametrize("kind", LASTING)
def test_a_new_process_reads_every_kind_of_value_from_every_store(kind: str, tmp_path):
    url = url_of(kind, tmp_path)
    with open_saver(url) as saver:
        config = put(saver, config_of("t"), EVERYTHING)
        saver.put_writes(config, list(EVERYTHING.items()), "task")
    with open_saver(url) as saver:
        found = got(saver, config_of("t"))
        assert kinds.shape(found.checkpoint["channel_values"]) == kinds.shape(EVERYTHING)
        assert {channel: kinds.shape(value) for _, channel, value in found.pending_writes or ()} == {
            name: kinds.shape(value) for name, value in EVERYTHING.items()
        }


@FEWER
@given(kinds.values(), kinds.values())
def test_a_channel_that_changes_between_equal_values_of_other_types_is_changed(one: Any, other: Any):
    pairs = [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ([1], [True]),
        ((1,), [1]),
        ({"a": 1}, {"a": 1.0}),
        (one, other),
    ]
    with open_saver() as saver:
        for number, (before, after) in enumerate(pairs):
            first = put(saver, config_of(str(number)), {"value": before}, 1)
            put(saver, first, {"value": after}, 2)
            assert kinds.shape(channels(saver, first)["value"]) == kinds.shape(before)
            assert kinds.shape(channels(saver, config_of(str(number)))["value"]) == kinds.shape(after)


# -- whose a value is ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_what_is_put_and_what_is_got_may_be_changed_by_who_has_it(kind: str, tmp_path):
    message, plain, opened = HumanMessage("before"), [1, {"a": [1]}], ([1], {"m": HumanMessage("x")})
    with open_saver(url_of(kind, tmp_path)) as saver:
        config = put(saver, config_of("t"), {"messages": [message], "plain": plain, "opened": opened})
        saver.put_writes(config, [("plain", plain), ("opened", opened), ("messages", [message])], "task")
        before = kinds.shape(list(got(saver, config)))
        for _ in range(2):
            found = got(saver, config)
            for values in (
                {"messages": [message], "plain": plain, "opened": opened},
                found.checkpoint["channel_values"],
                {channel: value for _, channel, value in found.pending_writes or ()},
            ):
                spoil(values)
            found.metadata["step"] = 99
            found.metadata["parents"]["x"] = "y"
            assert kinds.shape(list(got(saver, config))) == before
        newer = put(saver, config, {"messages": [], "plain": 1, "opened": None}, 2)
        assert kinds.shape(list(got(saver, config))) == before
        assert channels(saver, newer) == {"messages": [], "plain": 1, "opened": None}


def spoil(values: dict[str, Any]) -> None:
    values["messages"][0].content = "spoilt"
    values["messages"][0].additional_kwargs["spoilt"] = True
    values["messages"].append("spoilt")
    values["plain"][1]["a"].append("spoilt")
    values["plain"].append("spoilt")
    values["opened"][0].append("spoilt")
    values["opened"][1]["m"].content = "spoilt"


# -- what is refused -------------------------------------------------------------------------------


@dataclass
class Unregistered:
    number: int = 1


class Secret(str):
    pass


class Own(HumanMessage):
    pass


class Shade(enum.StrEnum):
    DARK = "dark"


REFUSED = [
    Unregistered(),
    Shade.DARK,
    Secret("x"),
    OrderedDict(a=1),
    object(),
    lambda: 1,
    1j,
    range(3),
    ...,
    int,
    Own(content="of another class"),
    ToolMessage("x", tool_call_id="1", artifact=Unregistered()),
    ToolMessage("x", tool_call_id="1", artifact=Shade.DARK),
    {1: ToolMessage("x", tool_call_id="1", artifact=Unregistered())},
]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("value", REFUSED, ids=lambda value: type(value).__name__)
def test_what_would_not_come_back_is_refused_when_it_is_put_and_nothing_is_recorded(value: Any):
    for nested in (value, [value], {"a": (value,)}):
        with HoldfastSaver.open("memory:") as saver:
            with pytest.raises(UnsupportedTypeError) as refusal:
                put(saver, config_of("t"), {"fine": 1, "odd": nested})
            assert "odd" in str(refusal.value) and "types=[" in str(refusal.value)
            assert saver.get_tuple(config_of("t")) is None
            config = put(saver, config_of("t"), {"fine": 1})
            with pytest.raises(UnsupportedTypeError, match="types="):
                saver.put_writes(config, [("odd", nested)], "task")
            assert got(saver, config).pending_writes == []


def test_a_serializer_that_would_pickle_is_not_let():
    with holdfast.open("memory:") as service:
        saver = HoldfastSaver(service, serde=JsonPlusSerializer(pickle_fallback=True))
        with pytest.raises(UnsupportedTypeError):
            put(saver, config_of("t"), {"odd": 1j})


# -- classes that change ----------------------------------------------------------------------------


def model(**fields: Any) -> type:
    made = type("Person", (BaseModel,), {"__annotations__": fields, "__module__": __name__})
    globals()["Person"] = made
    return made


def person(**fields: Any) -> type:
    made = type("Person", (), {"__annotations__": fields, "__module__": __name__})
    globals()["Person"] = dataclass(made)
    return made


@pytest.mark.parametrize("make", [model, person])
@pytest.mark.parametrize("fields", [{"full_name": str}, {"name": str, "age": int}])
def test_a_field_that_was_renamed_or_is_new_is_told(make: Any, fields: dict[str, Any], tmp_path):
    url = url_of("file", tmp_path)
    with HoldfastSaver.open(url, types=[make(name=str)]) as saver:
        put(saver, config_of("t"), {"who": sys.modules[__name__].Person(name="ann")})
    with HoldfastSaver.open(url, types=[make(**fields)]) as saver:
        with pytest.raises(CheckpointSchemaError, match="Person"):
            saver.get_tuple(config_of("t"))
        assert [item.metadata["step"] for item in saver.list(config_of("t"))] == [1]


@pytest.mark.parametrize("make", [model, person])
def test_a_class_that_is_not_registered_any_more_is_told(make: Any, tmp_path):
    url = url_of("file", tmp_path)
    with HoldfastSaver.open(url, types=[make(name=str)]) as saver:
        put(saver, config_of("t"), {"who": sys.modules[__name__].Person(name="ann")})
    with HoldfastSaver.open(url) as saver, pytest.raises(CheckpointSchemaError, match="Person"):
        saver.get_tuple(config_of("t"))


def test_a_class_that_the_serializer_no_longer_allows_is_told(tmp_path):
    allowed = JsonPlusSerializer(allowed_msgpack_modules=[(__name__, "Unregistered")])
    with holdfast.open(url_of("file", tmp_path)) as service:
        put(HoldfastSaver(service, serde=allowed), config_of("t"), {"odd": Unregistered(3)})
        assert channels(HoldfastSaver(service, serde=allowed), config_of("t")) == {"odd": Unregistered(3)}
        with pytest.raises(CheckpointSchemaError, match=r"Unregistered came back as builtins\.dict"):
            HoldfastSaver(service).get_tuple(config_of("t"))


# -- what it costs ----------------------------------------------------------------------------------


def test_an_image_in_five_channels_and_again_in_a_message_is_stored_once(tmp_path):
    image = "data:image/png;base64," + "".join(f"{number:06d}" for number in range(20_000))
    message = HumanMessage([{"type": "image_url", "image_url": {"url": image}}])
    with open_saver(url_of("file", tmp_path), compression="none", warn_bytes=10**7) as saver:
        put(saver, config_of("t"), {**{f"c{n}": image for n in range(5)}, "messages": [message]})
    assert stored_bytes(tmp_path) < 2 * len(image)


@pytest.mark.parametrize("kind", KINDS)
def test_growing_messages_cost_what_is_added(kind: str, tmp_path):
    with open_saver(url_of(kind, tmp_path)) as saver:
        config, said = config_of("t"), []
        for number in range(1, 61):
            said.append(HumanMessage(f"{number} " + "words " * 100, id=str(number)))
            config = put(saver, config, {"messages": list(said)}, number)
        assert channels(saver, config)["messages"] == said
    if kind in ("file", "sqlite"):
        text = sum(len(message.content) for message in said)
        assert stored_bytes(tmp_path) < 3 * text + 2_048 * len(said) + 200_000


def test_a_value_that_has_to_be_taken_apart_is_tried_in_hope_once(monkeypatch):
    tries: list[bool] = []

    def watched(*given, is_hopeful, **more):
        tries.append(is_hopeful)
        return draw(*given, is_hopeful=is_hopeful, **more)

    monkeypatch.setattr(langgraph_recorder, "draw", watched)
    deep = {"a": {"b": [HumanMessage("hi", id="1")]}, "c": (1, {2})}
    with open_saver() as saver:
        first = put(saver, config_of("t"), {"deep": deep}, 1)
        second = put(saver, first, {"deep": {**deep, "d": 1}}, 2)
        assert channels(saver, first) == {"deep": deep}
        assert channels(saver, second) == {"deep": {**deep, "d": 1}}
    assert tries == [True, False, True]


def test_a_message_that_came_back_takes_fields_of_its_own_as_any_other_does():
    with open_saver() as saver:
        config = put(saver, config_of("t"), {"messages": [AIMessage("a"), AIMessage("b")]})
        first, second = got(saver, config_of("t")).checkpoint["channel_values"]["messages"]
        first.score = 3
        assert (first.score, first.model_extra, second.model_extra) == (3, {"score": 3}, {})
        put(saver, config, {"messages": [first, second]}, 2)
        again = got(saver, config_of("t")).checkpoint["channel_values"]["messages"]
    assert [message.model_extra for message in again] == [{"score": 3}, {}]


class Brief(BaseModel):
    """A class of the application's that holds messages."""

    messages: list[BaseMessage]


def test_a_class_that_holds_messages_is_named_with_theirs_and_the_refusal_says_so(tmp_path):
    url, brief = url_of("file", tmp_path), Brief(messages=[HumanMessage("go", id="1")])
    with (
        HoldfastSaver.open(url, types=[Brief]) as saver,
        pytest.raises(UnsupportedTypeError, match="which classes it holds, be they messages"),
    ):
        put(saver, config_of("t"), {"brief": brief})
    for _ in range(2):
        with HoldfastSaver.open(url, types=[Brief, HumanMessage]) as saver:
            config = put(saver, config_of("t"), {"brief": brief})
            assert channels(saver, config) == {"brief": brief}


# -- sets ------------------------------------------------------------------------------------------


class Plan(BaseModel):
    tags: set[Any]
    steps: list[Any] = []


@dataclass
class Held:
    tags: frozenset[Any]


def test_objects_that_hold_sets_come_back_in_whatever_order_their_sets_are():
    """3 and 11 want one place of a small set: filled in the order it is gone through, it is in another."""
    assert list({3, 11}) != list(set(list({3, 11})))
    plans = [Plan(tags={3, 11}, steps=[{3, 11}]), Plan(tags={True, 3, 11})]
    held = [Held(frozenset([3, 11])), Held(frozenset([11, 3]))]
    serde = JsonPlusSerializer(allowed_msgpack_modules=[Plan, Held])
    with holdfast.open("memory:") as service:
        saver = HoldfastSaver(service, serde=serde)
        at = put(saver, config_of("t"), {"plans": plans, "held": held})
        saver.put_writes(at, [("plans", plans)], "task")
        found = got(saver, at)
    assert found.checkpoint["channel_values"] == {"plans": plans, "held": held}
    assert found.pending_writes == [("task", "plans", plans)]


def test_objects_that_hold_sets_of_what_would_come_back_as_something_else_are_refused():
    serde = JsonPlusSerializer(allowed_msgpack_modules=[Held])
    with holdfast.open("memory:") as service:
        saver = HoldfastSaver(service, serde=serde)
        for tags in ([3, 11, Shade.DARK], [3, 11, Secret("x")]):
            with pytest.raises(UnsupportedTypeError, match="would not come back"):
                put(saver, config_of("t"), {"held": Held(frozenset(tags))})


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_what_overwrites_a_channel_comes_back_whatever_it_holds(kind: str, tmp_path: Path):
    held: list[Any] = [{3, 11}, [HumanMessage("x")], {"a": ({11, 3}, kinds.Order(1))}, None]
    for number, value in enumerate(held):
        with open_saver(url_of(kind, tmp_path)) as saver:
            at = put(saver, config_of(str(number)), {"seen": set()})
            saver.put_writes(at, [("seen", Overwrite(value)), ("seen", [Overwrite(value)])], "task")
            written: Any = got(saver, at).pending_writes
        found, [listed] = (item for _, _, item in written)
        assert kinds.shape(found.value) == kinds.shape(listed.value) == kinds.shape(value)


# -- commands --------------------------------------------------------------------------------------


class Counted(TypedDict, total=False):
    n: int


def counting() -> StateGraph[Any, Any, Any, Any]:
    graph = StateGraph(Counted)
    graph.add_node("add", lambda state: {"n": state.get("n", 0) + 1})
    graph.add_edge(START, "add")
    graph.add_edge("add", END)
    return graph


@pytest.mark.parametrize(
    "command", [Command(update={"n": 5}), Command(update=[("n", 5)]), Command(resume="x")]
)
def test_a_thread_may_begin_with_a_command_as_over_the_saver_of_langgraph(command: Any, tmp_path: Path):
    def told(saver: Any) -> Any:
        app = counting().compile(checkpointer=saver)
        answer = app.invoke(command, config_of("t"))
        return answer, [one.values for one in app.get_state_history(config_of("t"))]

    expected = told(InMemorySaver())
    with open_saver(url_of("file", tmp_path)) as saver:
        assert told(saver) == expected
    # What was begun with is read back from what is stored.
    with open_saver(url_of("file", tmp_path)) as saver:
        app = counting().compile(checkpointer=saver)
        assert [one.values for one in app.get_state_history(config_of("t"))] == expected[1]


def test_a_command_that_holds_what_would_not_come_back_is_refused_where_it_does():
    with open_saver() as saver, pytest.raises(UnsupportedTypeError, match=r"odd\.update\.x"):
        put(saver, config_of("t"), {"odd": Command(update={"x": Unregistered()})})
