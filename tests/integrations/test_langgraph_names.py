"""Nodes and channels may be called as secrets are: what is told of them is none, and a thread goes on."""

from __future__ import annotations

import contextlib
import io
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import holdfast
from holdfast.adapters.memory import MemoryStore
from holdfast.cli.main import main
from holdfast.domain.errors import CheckpointSchemaError
from holdfast.integrations import langgraph_names, langgraph_states
from holdfast.integrations.langgraph import HoldfastSaver
from holdfast.integrations.langgraph_names import read_name, told_event, told_name, ways_to_tell
from tests.application.services import make_service
from tests.integrations.langgraph_graphs import joined
from tests.integrations.langgraph_stores import channels, config_of, got, put

TASK = "7e391782-1708-421f-bb6b-4b52e7d5de20"
SECRETS = ["token", "password", "api_key", "secret", "Authorization", "bearer", "pin", "cookie", "X-Api-Key"]
CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Counted(TypedDict):
    n: Annotated[int, operator.add]


def counting(node: str, **compiled: Any) -> StateGraph[Any]:
    """A graph on a node, and one more node behind it."""
    inner = StateGraph(Counted)
    inner.add_node("one", lambda state: {"n": 1})
    inner.add_edge(START, "one")
    outer = StateGraph(Counted)
    outer.add_node(node, inner.compile(**compiled))
    outer.add_node("z", lambda state: {"n": 1})
    outer.add_edge(START, node)
    outer.add_edge(node, "z")
    return outer


# -- names ----------------------------------------------------------------------------------------------


@given(st.text(st.sampled_from("a|:/ name")), st.booleans())
def test_a_name_comes_back_however_it_is_told(name: str, is_hidden: bool):
    told = told_name(name, lambda _: is_hidden)
    assert read_name(told) == name and told in ways_to_tell(name)


@given(st.lists(st.text(st.sampled_from("a|:name")), unique=True), st.data())
def test_no_two_names_are_told_as_one(names: list[str], data: st.DataObject):
    told = [told_name(name, lambda _: data.draw(st.booleans())) for name in names]
    assert len(set(told)) == len(told)


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("form", ["{}", "{}:" + TASK, "a:" + TASK + "|{}", "{0}:" + TASK + "|{0}", "{}|1"])
def test_redaction_leaves_what_stands_behind_a_told_name(form: str, name: str):
    with holdfast.open("memory:") as service:
        hides, ns = service.recording.hides, form.format(name)
        told = told_event(
            {"ns": ns, "metadata": {"parents": {"": "1f0", ns: "1f1"}, "step": 1}, "state": {}}, hides
        )
        told["state"][told_name(ns, hides)] = {"names": "[]", "told": [1, "2"]}
        assert service.append_event("w", "SAID", told).data == told


def test_names_that_are_none_of_secrets_are_told_as_they_are():
    with holdfast.open("memory:") as service:
        for name in ("", "kept", f"child:{TASK}", f"research:{TASK}|library", "tokens_counter"):
            assert told_name(name, service.recording.hides) == name


# -- graphs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [{}, {"checkpointer": True}], ids=["for one step", "that remembers"])
@pytest.mark.parametrize("node", SECRETS)
def test_a_graph_on_a_node_called_as_a_secret_goes_on_after_a_restart(
    node: str, compiled: dict[str, Any], tmp_path: Path
):
    seen = []
    for name in (node, "child"):
        for _ in range(2):
            with HoldfastSaver.open(f"file:{tmp_path}/{name}") as saver:
                app = counting(name, **compiled).compile(checkpointer=saver)
                answer = app.invoke({"n": 1}, CONFIG, durability="sync")
                history = [found.values for found in app.get_state_history(CONFIG)]
                seen.append((name == node, answer, history))
    assert [item[1:] for item in seen if item[0]] == [item[1:] for item in seen if not item[0]]


@pytest.mark.parametrize("node", SECRETS)
def test_a_question_in_a_graph_on_such_a_node_is_answered_after_a_restart(node: str, tmp_path: Path):
    runs: list[str] = []

    def work(state: Counted) -> Any:
        runs.append("work")
        return {"n": 1}

    inner, outer = StateGraph(Counted), StateGraph(Counted)
    inner.add_node("work", work)
    inner.add_node("ask", lambda state: {"n": interrupt("how many?")})
    inner.add_edge(START, "work")
    inner.add_edge("work", "ask")
    middle = StateGraph(Counted)
    middle.add_node(node, inner.compile())
    middle.add_edge(START, node)
    outer.add_node(node, middle.compile())
    outer.add_edge(START, node)
    with HoldfastSaver.open(f"file:{tmp_path}/s") as saver:
        outer.compile(checkpointer=saver).invoke({"n": 1}, CONFIG, durability="sync")
    with HoldfastSaver.open(f"file:{tmp_path}/s") as saver:
        app = outer.compile(checkpointer=saver)
        around: Any = app.get_state(CONFIG, subgraphs=True).tasks[0].state
        assert around.values == {"n": 1}
        answer = app.invoke(Command(resume=5), CONFIG, durability="sync")
    # Each graph adds what the one inside it answers.
    assert answer["n"] > 7 and runs == ["work"]


def test_a_name_that_the_users_own_rules_hide_is_told_otherwise_too(tmp_path: Path):
    rules = tmp_path / "rules.toml"
    rules.write_text('keys = ["ledger"]\n')
    for number in (8, 16):
        with HoldfastSaver.open(f"file:{tmp_path}/s", redact_patterns=str(rules)) as saver:
            app = counting("ledger", checkpointer=True).compile(checkpointer=saver)
            assert app.invoke({"n": 1}, CONFIG)["n"] <= number


# -- stores ---------------------------------------------------------------------------------------------


def two_savers(**settings: Any) -> tuple[HoldfastSaver, Callable[[], HoldfastSaver]]:
    """One that writes as those of before did, and what opens its store as one does now."""
    store = MemoryStore()
    return HoldfastSaver(make_service(store, **settings)), lambda: HoldfastSaver(make_service(store))


def as_it_was(patch: pytest.MonkeyPatch) -> None:
    """Tell names as they are, as the versions before did."""
    patch.setattr(langgraph_names, "told_name", lambda name, hides: name)
    patch.setattr(langgraph_states, "told_name", lambda name, hides: name)


def test_a_store_that_has_such_a_name_as_it_is_is_read_and_gone_on_with(monkeypatch: pytest.MonkeyPatch):
    writer, opened = two_savers(redact=False)
    with monkeypatch.context() as patch:
        as_it_was(patch)
        root = put(writer, config_of("t"), {"n": 1}, 1)
        inner = put(writer, config_of("t", "token"), {"memory": "old", "more": [1]}, 1)
    reader = opened()
    assert channels(reader, config_of("t", "token")) == {"memory": "old", "more": [1]}
    root = put(reader, root, {"n": 2}, 2)
    assert channels(opened(), config_of("t", "token")) == {"memory": "old", "more": [1]}
    versions = {"memory": 2, "more": 1}
    later = put(reader, inner, {"memory": "new", "more": [1]}, channel_versions=versions)
    put(reader, root, {"n": 3}, 3)
    for saver in (reader, opened()):
        assert channels(saver, later) == {"memory": "new", "more": [1]}
        assert channels(saver, inner) == {"memory": "old", "more": [1]}
        assert channels(saver, config_of("t")) == {"n": 3}
    state = reader._service.load_latest("langgraph/t")
    assert state is not None and list(state.stage_states) == ["token|:name"]


@pytest.mark.filterwarnings("ignore::holdfast.domain.errors.RedactedStateWarning")
def test_what_was_hidden_already_is_told_and_stops_nobody_else(monkeypatch: pytest.MonkeyPatch):
    writer, opened = two_savers()
    with monkeypatch.context() as patch:
        as_it_was(patch)
        root = put(writer, config_of("t"), {"n": 1}, 1)
        put(writer, config_of("t", "token"), {"memory": "old"}, 1)
    reader = opened()
    with pytest.raises(CheckpointSchemaError, match="cannot be read"):
        reader.get_tuple(config_of("t", "token"))
    put(reader, root, {"n": 2}, 2)
    put(reader, config_of("t", "token"), {"memory": "new"}, 2)
    assert channels(opened(), config_of("t")) == {"n": 2}
    assert channels(opened(), config_of("t", "token")) == {"memory": "new"}


@pytest.mark.filterwarnings("ignore::holdfast.domain.errors.RedactedStateWarning")
def test_what_the_channels_of_such_a_graph_hold_is_hidden_as_ever():
    writer, opened = two_savers()
    put(writer, config_of("t", "token"), {"password": "hunter2hunter2", "plain": "to be seen"})
    found = channels(opened(), config_of("t", "token"))
    assert found["plain"] == "to be seen" and found["password"].startswith("[REDACTED:")


def test_the_parents_of_a_graph_inside_such_a_graph_are_no_secret():
    writer, opened = two_savers()
    parents = {"": "1f0", "token": "1f1", f"password:{TASK}": "1f2"}
    at = put(writer, config_of("t", "token|child"), {"n": 1}, metadata={"parents": parents})
    for saver in (writer, opened()):
        assert got(saver, at).metadata["parents"] == parents


def test_the_command_line_shows_what_is_in_such_a_store(tmp_path: Path):
    url = f"file:{tmp_path}/s"
    with HoldfastSaver.open(url) as saver:
        said = [HumanMessage("to be seen", id="1")]
        root = put(saver, config_of("t"), {"messages": said}, 1)
        put(saver, config_of("t", "token"), {"memory": "first"}, 1)
        put(saver, root, {"messages": [*said, HumanMessage("so is this", id="2")]}, 2)
    shown = printed("show", "langgraph/t", "--store", url)
    assert "[2] last: human: so is this" in shown and "token" in shown
    assert "so is this" in printed("diff", "langgraph/t@2", "langgraph/t@3", "--store", url)
    assert '"first"' in printed("show", "langgraph/t", "--state=/stage_states", "--store", url)


def printed(*words: str) -> str:
    """Answer what the command line prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(list(words)) == 0
    return out.getvalue()


@pytest.mark.filterwarnings("ignore::holdfast.domain.errors.RedactedStateWarning")
@pytest.mark.parametrize("channel", ["password", "api_key", "token", "items"])
def test_a_delta_channel_called_as_a_secret_goes_on_after_a_restart(channel: str, tmp_path: Path):
    kept: Any = Annotated[list[Any], DeltaChannel(joined, list, snapshot_frequency=3)]
    state: Any = TypedDict("state", {channel: kept})  # type: ignore[misc]
    graph: Any = StateGraph(state)
    graph.add_node("one", lambda state: {channel: ["one"]})
    graph.add_edge(START, "one")
    counts = []
    for number in range(1, 5):
        with HoldfastSaver.open(f"file:{tmp_path}/s") as saver:
            app = graph.compile(checkpointer=saver)
            answer = app.invoke({channel: ["zero"]}, CONFIG, durability="sync")
            assert len(answer[channel]) == 2 * number
            metadata: Any = got(saver, config_of("t")).metadata
            counts.append(metadata.get("counters_since_delta_snapshot"))
    assert any(counts)
    for told in filter(None, counts):
        assert [*told] == [channel] and all(type(count) is int for count in told[channel])
