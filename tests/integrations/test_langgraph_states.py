"""Where in a workflow's state the channels are, so that everything else that reads a store can show them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from holdfast.adapters.memory import MemoryStore
from holdfast.integrations import langgraph_states
from holdfast.integrations.langgraph import HoldfastSaver
from tests.application.services import make_service
from tests.integrations.langgraph_stores import channels, checkpoint_of, config_of, got, metadata_of, put

SAID: list[Any] = [HumanMessage("hi", id="1"), AIMessage("hello", id="2")]


@pytest.fixture
def saver():
    with HoldfastSaver.open("memory:") as opened:
        yield opened


def state_of(saver: HoldfastSaver) -> Any:
    return saver._service.load_latest("langgraph/t")


def test_channels_are_the_context_and_messages_are_messages(saver):
    put(saver, config_of("t"), {"messages": SAID, "plan": ["a"], "n": 1})
    state = state_of(saver)
    assert [message["content"] for message in state.messages] == ["hi", "hello"]
    assert state.context == {"plan": ["a"], "n": 1}
    assert state.metadata["framework"] == "langgraph" and state.metadata["thread_id"] == "t"


@pytest.mark.parametrize("value", ["text", [], [1], {"a": 1}, None, (HumanMessage("x"),), [*SAID, "mixed"]])
def test_a_channel_called_messages_that_holds_none_is_a_channel_like_others(saver, value: Any):
    first = put(saver, config_of("t"), {"messages": SAID}, 1)
    second = put(saver, first, {"messages": value}, 2)
    third = put(saver, second, {"messages": SAID}, 3)
    assert [channels(saver, at)["messages"] for at in (first, second, third)] == [SAID, value, SAID]


def test_channels_of_a_graph_inside_are_its_stage_until_the_graph_around_it_goes_on(saver):
    root = put(saver, config_of("t"), {"messages": SAID, "n": 1}, 1)
    inner = put(saver, config_of("t", "child:1"), {"draft": "x", "messages": SAID[:1]}, 1)
    kept = put(saver, config_of("t", "kept"), {"memory": "stays"}, 1)
    state = state_of(saver)
    assert state.stage_states["child:1"]["draft"] == "x" and state.stage_states["kept"] == {"memory": "stays"}
    assert state.context == {"n": 1} and len(state.messages) == 2
    put(saver, root, {"messages": SAID, "n": 2}, 2)
    assert list(state_of(saver).stage_states) == ["kept"]
    assert channels(saver, inner) == {"draft": "x", "messages": SAID[:1]}
    assert channels(saver, kept) == {"memory": "stays"}
    assert channels(saver, root) == {"messages": SAID, "n": 1}


def test_a_graph_inside_may_come_before_the_one_around_it(saver):
    inner = put(saver, config_of("t", "child:1"), {"a": 1}, 1)
    root = put(saver, config_of("t"), {"b": 2}, 1)
    assert channels(saver, inner) == {"a": 1} and channels(saver, root) == {"b": 2}


def test_fields_of_a_checkpoint_that_are_not_known_here_come_back(saver):
    checkpoint = checkpoint_of({"n": 1}, pending_sends=[["x", 1]], from_tomorrow={"a": [1]})
    at = saver.put(config_of("t"), checkpoint, metadata_of(1), {"n": 1})
    assert got(saver, at).checkpoint == checkpoint


def as_the_first_version(checkpoint: Any, kinds: dict[str, Any], names: Any) -> Any:
    """Answer what a state held of a checkpoint before names were told once."""
    told = {"versions": checkpoint["channel_versions"], "seen": checkpoint["versions_seen"], "updated": ["n"]}
    text = json.dumps(
        [told, ["kinds", *kinds], {"0": {str(at + 1): kinds[name] for at, name in enumerate(kinds)}}]
    )
    return {"v": checkpoint["v"], "id": checkpoint["id"], "told": text}, ()


def test_a_thread_that_the_first_version_wrote_is_read_and_goes_on(monkeypatch):
    store = MemoryStore()
    writer, reader, later = (HoldfastSaver(make_service(store, redact=False)) for _ in range(3))
    with monkeypatch.context() as patch:
        patch.setattr(langgraph_states, "_space", as_the_first_version)
        old = checkpoint_of({"n": 1, "messages": SAID}, updated_channels=["n"])
        at = writer.put(config_of("t"), old, metadata_of(1), {"n": 1, "messages": 1})
    assert got(reader, at).checkpoint == old
    new = checkpoint_of({"n": 2, "messages": SAID}, channel_versions={"n": 2, "messages": 1})
    then = reader.put(at, new, metadata_of(2), {"n": 2})
    assert got(later, then).checkpoint == new and got(later, at).checkpoint == old


def test_a_workflow_that_has_other_checkpoints_too_keeps_both(saver):
    first = put(saver, config_of("t"), {"n": 1}, 1)
    saver._service.create_checkpoint("langgraph/t", {"by": "hand"})
    second = put(saver, first, {"n": 2}, 2)
    assert channels(saver, first) == {"n": 1} and channels(saver, second) == {"n": 2}
    assert [item.metadata["step"] for item in saver.list(config_of("t"))] == [2, 1]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[str, int, dict[str, int], list[Any]]]:
    """Draw puts: a namespace, which one before it each follows, channels that change, and messages."""
    count = draw(st.integers(1, 8))
    spaces = st.sampled_from(["", "", "", "child:1", "kept"])
    names = st.dictionaries(st.sampled_from("abc"), st.integers(0, 2), max_size=3)
    return [
        (draw(spaces), draw(st.integers(-1, 7)), draw(names), draw(st.sampled_from([[], SAID, SAID[:1]])))
        for _ in range(count)
    ]


@settings(max_examples=max(25, settings().max_examples // 2))
@given(histories())
def test_any_history_with_branches_and_graphs_inside_comes_back_checkpoint_by_checkpoint(history: Any):
    store = MemoryStore()
    writer, reader = (HoldfastSaver(make_service(store, redact=False)) for _ in range(2))
    placed: list[tuple[Any, dict[str, Any], str]] = []
    for number, (ns, parent, changed, said) in enumerate(history, start=1):
        mine = [item for item in placed if item[2] == ns]
        config, before, _ = (
            mine[parent % len(mine)] if mine and parent >= 0 else (config_of("t", ns), None, ns)
        )
        values: dict[str, Any] = dict(before["channel_values"]) if before else {}
        versions: dict[str, Any] = dict(before["channel_versions"]) if before else {}
        values |= {**changed, "messages": said}
        versions |= dict.fromkeys([*changed, "messages"], number)
        checkpoint: Any = checkpoint_of(values, channel_versions=versions)
        new = {name: number for name in (*changed, "messages")}
        placed.append((writer.put(config, checkpoint, metadata_of(number), new), checkpoint, ns))
    for saver in (writer, reader):
        for config, checkpoint, _ in placed:
            assert got(saver, config).checkpoint == checkpoint
