from __future__ import annotations

import ast
import asyncio
import inspect
import threading
from dataclasses import dataclass, make_dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    CheckpointStorage,
    Content,
    Message,
    SubWorkflowRequestMessage,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowEvent,
    WorkflowMessage,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

import holdfast
from holdfast.domain.errors import CheckpointError, CheckpointSchemaError, ConfigError, RedactedStateWarning
from holdfast.integrations import agent_framework
from holdfast.integrations.agent_framework import HoldfastCheckpointStorage, checkpoint_types


@dataclass
class Draft:
    text: str
    tags: set[str]


class Grade(Enum):
    GOOD = 1


class Verdict(BaseModel):
    grade: Grade
    by: str = "judge"


def types():
    return checkpoint_types(Draft, Grade, Verdict)


def made(name="report", previous=None, **fields):
    return WorkflowCheckpoint(name, "hash", previous_checkpoint_id=previous, **fields)


@pytest.fixture(params=["file", "sqlite", "memory"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"{request.param}:{tmp_path / 'store'}"


@pytest.fixture
def folder(tmp_path):
    return f"file:{tmp_path / 'store'}"


def on(url, work, registry=None):
    """Run a coroutine function with a storage, and close that."""

    async def main():
        async with HoldfastCheckpointStorage(url, registry=registry or types()) as storage:
            return await work(storage)

    return asyncio.run(main())


async def round_trip(storage: CheckpointStorage, checkpoint: WorkflowCheckpoint) -> WorkflowCheckpoint:
    return await storage.load(await storage.save(checkpoint))


def test_what_was_saved_is_loaded_with_everything_in_it(url):
    sent = {"a": [WorkflowMessage("x", "a", "b"), WorkflowMessage(Draft("t", {"u"}), "a")], "c": []}
    asked = WorkflowEvent.request_info("r1", "a", Draft("?", set()), str)
    first = made(
        messages=sent,
        state={"n": 1, 7: "seven", "when": datetime.now(UTC), "_executor_state": {"a": {"seen": [(1, 2)]}}},
        pending_request_info_events={"r1": asked},
        iteration_count=3,
        metadata={"superstep": 3},
    )

    loaded = on(url, lambda storage: round_trip(storage, first))

    assert loaded is not first
    assert replace(loaded, pending_request_info_events={}) == replace(first, pending_request_info_events={})
    [again] = loaded.pending_request_info_events.values()
    assert (again.request_id, again.data, again.response_type) == ("r1", Draft("?", set()), str)


def test_checkpoints_are_listed_by_the_name_of_the_workflow_in_the_order_they_were_saved(url):
    async def work(storage):
        first, second, other = made(), made(), made("other")
        second.previous_checkpoint_id = first.checkpoint_id
        for checkpoint in (first, second, other):
            await storage.save(checkpoint)
        wanted = [first.checkpoint_id, second.checkpoint_id]
        assert await storage.list_checkpoint_ids(workflow_name="report") == wanted
        assert await storage.list_checkpoints(workflow_name="report") == [first, second]
        assert await storage.get_latest(workflow_name="report") == second
        assert await storage.list_checkpoints(workflow_name="nobody") == []
        assert await storage.get_latest(workflow_name="nobody") is None

    on(url, work)


def test_what_was_deleted_is_gone_and_the_rest_stays(url):
    async def work(storage):
        first = made(state={"n": 1})
        second = made(previous=first.checkpoint_id, state={"n": 2})
        for checkpoint in (first, second):
            await storage.save(checkpoint)
        assert await storage.delete(second.checkpoint_id) is True
        assert await storage.delete(second.checkpoint_id) is False
        assert await storage.get_latest(workflow_name="report") == first
        with pytest.raises(WorkflowCheckpointException):
            await storage.load(second.checkpoint_id)
        # The run goes on from what is left of it.
        third = made(previous=first.checkpoint_id, state={"n": 3})
        assert await round_trip(storage, third) == third

    on(url, work)


def test_a_checkpoint_that_is_not_there_is_told_in_the_frameworks_own_way(url):
    async def work(storage):
        with pytest.raises(WorkflowCheckpointException, match="no-such-id"):
            await storage.load("no-such-id")
        assert await storage.delete("no-such-id") is False

    on(url, work)


def test_what_another_process_removed_meanwhile_is_told_as_missing(folder):
    async def work(storage):
        saved = made()
        await storage.save(saved)
        async with HoldfastCheckpointStorage(folder, registry=types()) as other:
            assert await other.delete(saved.checkpoint_id)
        with pytest.raises(WorkflowCheckpointException, match="removed"):
            await storage.load(saved.checkpoint_id)
        # Its successor is kept all the same.
        after = made(previous=saved.checkpoint_id)
        assert await round_trip(storage, after) == after

    on(folder, work)


def test_the_same_checkpoint_again_is_stored_once_also_by_another_process(folder):
    first = made(state={"n": float("nan"), "said": [Message("user", ["x"])]})
    second = made(previous=first.checkpoint_id, state={"n": 2})

    async def work(storage):
        for checkpoint in (first, second, first, second):
            await storage.save(checkpoint)
        return await storage.list_checkpoint_ids(workflow_name="report")

    wanted = [first.checkpoint_id, second.checkpoint_id]
    assert on(folder, work) == on(folder, work) == wanted


def test_another_checkpoint_of_the_same_id_is_refused_and_the_first_one_stays(url):
    async def work(storage):
        first = made(state={"n": 1})
        second = made(previous=first.checkpoint_id, state={"n": 2})
        for saved in (first, second):
            await storage.save(saved)
            with pytest.raises(WorkflowCheckpointException, match=saved.checkpoint_id):
                await storage.save(replace(saved, state={"n": 99}))
            assert (await storage.load(saved.checkpoint_id)).state == saved.state

    on(url, work)


def test_a_service_that_is_open_already_stays_open(folder):
    async def main():
        async with holdfast.open_async(folder, registry=types()) as service:
            storage = HoldfastCheckpointStorage(service, registry=types())
            saved = made(state={"draft": Draft("x", set())})
            assert await round_trip(storage, saved) == saved
            await storage.close()
            assert len(await service.workflows()) == 1

    asyncio.run(main())


def test_types_with_functions_of_their_own_are_stored_with_those(folder):
    registry = holdfast.TypeRegistry()
    registry.register(complex, encode=lambda value: [value.real, value.imag], decode=lambda v: complex(*v))
    saved = made(state={"z": 1 + 2j})
    assert on(folder, lambda s: round_trip(s, saved), checkpoint_types(registry=registry)) == saved


def test_a_storage_is_used_by_one_loop_after_another(folder):
    storage = HoldfastCheckpointStorage(folder, registry=types())
    saved = made(state={"n": 1})
    assert asyncio.run(storage.save(saved)) == saved.checkpoint_id
    assert asyncio.run(storage.load(saved.checkpoint_id)) == saved
    asyncio.run(storage.close())
    asyncio.run(storage.close())


def test_a_run_that_somebody_else_has_taken_is_neither_written_nor_branched(folder):
    async def work(storage):
        first = made()
        await storage.save(first)
        [run] = await storage.list_runs(workflow_name="report")
        async with holdfast.open_async(folder) as service:
            lease = await service.acquire_lease(run, "somebody")
            with pytest.raises(holdfast.LeaseHeldError):
                await storage.save(made(previous=first.checkpoint_id))
            await service.release_lease(lease)
        assert await storage.list_runs(workflow_name="report") == {run: [first.checkpoint_id]}

    on(folder, work)


def test_an_id_that_was_removed_is_not_given_again(folder):
    async def work(storage):
        first = made(state={"n": 1})
        await storage.save(first)
        await storage.delete(first.checkpoint_id)
        with pytest.raises(WorkflowCheckpointException, match=first.checkpoint_id):
            await storage.save(first)

    on(folder, work)


def test_checkpoints_are_found_also_when_too_many_were_seen_to_remember(monkeypatch):
    monkeypatch.setattr(agent_framework, "_PLACES_MAX", 2)

    async def work(storage):
        saved = [made(state={"n": number}) for number in range(4)]
        for one in saved:
            await storage.save(one)
        assert [await storage.load(one.checkpoint_id) for one in saved] == saved

    on("memory:", work)


# Values


def said(*contents):
    return Message(
        "assistant", list(contents), author_name="a", message_id="m", additional_properties={"k": 1}
    )


CONTENTS = [
    Content.from_text("x\x00\ud800"),
    Content.from_data(b"\x00\x01", "image/png"),
    Content.from_uri("https://example.com/x.png", media_type="image/png"),
    Content.from_error(message="m", error_code="e"),
    Content.from_function_call("c1", "f", arguments={"a": [1]}),
    Content.from_function_result("c1", result="r"),
    Content.from_function_approval_request("q1", Content.from_function_call("c1", "f", arguments="{}")),
    Content.from_usage({"input_token_count": 1}),
]


@pytest.mark.parametrize("content", CONTENTS, ids=lambda content: content.type)
def test_contents_of_messages_come_back_as_they_were(content):
    [back] = (
        on("memory:", lambda s: round_trip(s, made(state={"said": said(content)}))).state["said"].contents
    )
    assert back == content


def test_a_message_loses_only_what_the_framework_never_writes_down():
    message = said("one")
    message.raw_representation = object()
    back = on("memory:", lambda s: round_trip(s, made(state={"m": message}))).state["m"]
    assert back.to_dict() == message.to_dict() and back.raw_representation is None


def test_an_exception_of_a_tool_is_kept_without_what_it_says():
    content = Content.from_function_result("c1", result="failed", exception="password is hunter2")
    back = on("memory:", lambda s: round_trip(s, made(state={"c": content}))).state["c"]
    assert back.exception and "hunter2" not in back.exception


def test_data_that_looks_like_a_content_stays_data():
    listed = [
        Content.from_text("x").to_dict(),
        {"$hf": "obj", "t": "Draft"},
        {"__pickled__": "gA==", "__type__": "x:y"},
    ]
    content = Content.from_mcp_server_tool_result("c1", output=listed)
    back = on("memory:", lambda s: round_trip(s, made(state={"c": content, "plain": listed}))).state
    assert back["c"].output == listed and back["plain"] == listed
    assert all(type(one) is dict for one in (*back["c"].output, *back["plain"]))


def test_answers_of_agents_come_back_with_their_value():
    response = AgentResponse(messages=[said("x")], response_id="1", value=Verdict(grade=Grade.GOOD))
    state = {
        "asked": AgentExecutorRequest([said("x")]),
        "answered": AgentExecutorResponse("a", response, [said("x")]),
    }
    back = on("memory:", lambda s: round_trip(s, made(state=state))).state
    assert back["asked"].messages[0].to_dict() == said("x").to_dict()
    answered = back["answered"].agent_response
    assert answered.to_dict() == response.to_dict() and answered.value == Verdict(grade=Grade.GOOD)


def test_an_answer_that_is_still_text_is_kept_as_the_value_it_stands_for():
    response = AgentResponse(messages=[said('{"grade": 1}')], response_format=Verdict)
    back = on("memory:", lambda s: round_trip(s, made(state={"r": response}))).state["r"]
    assert back.value == Verdict(grade=Grade.GOOD) and back.text == response.text


@pytest.mark.parametrize(
    "kind",
    [str, Any, bool, Draft, list[str], dict[str, Draft], Draft | None, list[Draft | int], tuple[int, str]],
)
def test_what_a_request_asks_for_comes_back_as_a_type(kind):
    asked = WorkflowEvent.request_info("r", "a", {"q": 1}, kind)
    back = on("memory:", lambda s: round_trip(s, made(pending_request_info_events={"r": asked})))
    assert back.pending_request_info_events["r"].response_type == kind


def test_a_checkpoint_inside_of_a_checkpoint_comes_back():
    asked = WorkflowEvent.request_info("r", "a", "?", str)
    inner = made("inner", messages={"a": [WorkflowMessage(SubWorkflowRequestMessage(asked, "a"), "a")]})
    back = on("memory:", lambda s: round_trip(s, made(state={"inner": inner}))).state["inner"]
    [message] = back.messages["a"]
    assert message.data.source_event.request_id == "r" and back.checkpoint_id == inner.checkpoint_id


ODD_TEXT = st.text(st.characters(codec=None), max_size=20)
TAGS = st.sampled_from(["$hf", "t", "v", "type", "__pickled__", "__type__"])
NUMBERS = st.integers() | st.floats(allow_nan=False) | st.decimals(allow_nan=False)
SINGLE = st.none() | st.booleans() | NUMBERS | ODD_TEXT | st.binary(max_size=8) | st.datetimes() | st.uuids()


def nested(inner):
    return (
        st.lists(inner, max_size=3) | st.tuples(inner) | st.dictionaries(TAGS | ODD_TEXT, inner, max_size=3)
    )


PLAIN = st.recursive(SINGLE, nested, max_leaves=8)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.dictionaries(ODD_TEXT, PLAIN, max_size=3), min_size=1, max_size=4))
def test_any_plain_state_comes_back_exactly(states):
    async def main():
        # A field that happens to be called `password` would be hidden.
        async with holdfast.open_async("memory:", registry=types(), redact=False) as service:
            storage = HoldfastCheckpointStorage(service, registry=types())
            chain = [made(state=state) for state in states]
            for before, after in pairwise(chain):
                after.previous_checkpoint_id = before.checkpoint_id
            for checkpoint in chain:
                await storage.save(checkpoint)
            return [one.state for one in await storage.list_checkpoints(workflow_name="report")]

    back = asyncio.run(main())
    assert back == states and repr(back) == repr(states)


def test_secrets_are_hidden_before_they_are_stored(folder):
    saved = made(state={"password": "hunter2-hunter2"})
    on(folder, lambda storage: storage.save(saved))
    with pytest.warns(RedactedStateWarning, match="password"):
        loaded = on(folder, lambda storage: storage.load(saved.checkpoint_id))
    assert "hunter2" not in loaded.state["password"]
    # What is stored is not what was given, so nobody can tell that this is the same.
    with pytest.warns(RedactedStateWarning), pytest.raises(WorkflowCheckpointException):
        on(folder, lambda storage: storage.save(saved))


class Unknown:
    pass


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"state": {"a": [1, {"b": Unknown()}]}}, r"context\.state\.a\[1\]\.b"),
        ({"state": {"lock": threading.Lock()}}, r"context\.state\.lock"),
        ({"state": {"kind": Unknown}}, r"context\.state\.kind"),
        ({"messages": {"a": [WorkflowMessage(Unknown(), "a")]}}, r"messages\[0\]\.data"),
        ({"metadata": {"x": lambda: None}}, r"metadata\.metadata\.x"),
    ],
)
def test_what_would_need_pickle_is_refused_with_the_path_to_it(folder, fields, place):
    async def work(storage):
        with pytest.raises(holdfast.UnsupportedTypeError, match=place):
            await storage.save(made(**fields))
        assert isinstance(storage.failure, holdfast.UnsupportedTypeError)
        assert await storage.list_checkpoint_ids(workflow_name="report") == []

    on(folder, work)


def test_a_request_for_a_type_that_nobody_named_is_refused():
    async def work(storage):
        asked = WorkflowEvent.request_info("r", "a", "?", list[Unknown])
        with pytest.raises(holdfast.UnsupportedTypeError, match="Unknown"):
            await storage.save(made(pending_request_info_events={"r": asked}))
        with pytest.raises(holdfast.UnsupportedTypeError, match="started"):
            await storage.save(made(state={"event": WorkflowEvent.started()}))

    on("memory:", work)


def test_a_type_that_is_no_longer_named_is_told_and_never_skipped(folder):
    saved = made(state={"draft": Draft("x", set())})
    on(folder, lambda storage: storage.save(saved))

    async def work(storage):
        with pytest.raises(CheckpointSchemaError, match="Draft"):
            await storage.load(saved.checkpoint_id)
        with pytest.raises(CheckpointSchemaError, match="Draft"):
            await storage.list_checkpoints(workflow_name="report")
        assert await storage.list_checkpoint_ids(workflow_name="report") == [saved.checkpoint_id]

    on(folder, work, checkpoint_types())


def test_two_types_of_one_name_are_refused():
    other = make_dataclass("Draft", ["text"])
    with pytest.raises(ConfigError, match="Draft"):
        checkpoint_types(Draft, other)


def test_neither_pickle_nor_private_modules_of_the_framework_are_imported():
    imported: list[str] = []
    for node in ast.walk(ast.parse(inspect.getsource(agent_framework))):
        if isinstance(node, ast.ImportFrom):
            imported.append(node.module or "")
        elif isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
    assert not [name for name in imported if "pickle" in name or name.startswith("agent_framework.")]


# Names


@pytest.mark.parametrize(
    ("name", "checkpoint_id"),
    [
        ("a/b", "c"),
        ("a", "b/c"),
        ("../..", "x/../y"),
        ("", " x "),
        ("x" * 400, "y" * 400),
        ("\ud800", "\x00@latest"),
    ],
)
def test_hostile_names_and_ids_are_stored_and_found(folder, name, checkpoint_id):
    saved = made(name, checkpoint_id=checkpoint_id, state={"n": 1})

    async def work(storage):
        assert await storage.load(checkpoint_id) == saved
        assert await storage.list_checkpoint_ids(workflow_name=name) == [checkpoint_id]
        assert await storage.list_checkpoint_ids(workflow_name=name + "x") == []

    on(folder, lambda storage: storage.save(saved))
    on(folder, work)


# What an attacker can write


def test_bytes_that_were_changed_in_the_store_are_refused(tmp_path, folder):
    saved = made(state={"said": "pay Ann"})
    on(folder, lambda storage: storage.save(saved))
    for path in (tmp_path / "store").rglob("*"):
        if path.is_file() and b"pay Ann" in path.read_bytes():
            path.write_bytes(path.read_bytes().replace(b"pay Ann", b"pay Bob"))

    async def work(storage):
        with pytest.raises((CheckpointError, WorkflowCheckpointException)):
            await storage.load(saved.checkpoint_id)

    on(folder, work)


async def forge(service, place, name, **changed):
    """Put what was stored at one place, changed, to another, as somebody does who may write the store."""
    state = await service.restore_checkpoint(place)
    state.workflow_id = ""
    state.metadata = {**state.metadata, **changed.pop("metadata", {})}
    state.context = {**state.context, **changed}
    await service.create_checkpoint(f"agent-framework/{name}/forged", state, stage_id="forged")


@pytest.mark.parametrize("name", ["report", "bank"])
def test_a_checkpoint_that_was_put_into_the_place_of_another_is_refused(folder, name):
    async def main():
        async with holdfast.open_async(folder, registry=types()) as service:
            storage = HoldfastCheckpointStorage(service, registry=types())
            saved = made(state={"amount": 1})
            await storage.save(saved)
            await forge(service, f"agent-framework/report/{saved.checkpoint_id}@1", name)
            with pytest.raises(holdfast.CheckpointCorruptError):
                await storage.load("forged")

    asyncio.run(main())


def test_a_forged_checkpoint_of_the_wrong_shape_is_refused_and_nothing_is_made_of_it(folder):
    async def main():
        async with holdfast.open_async(folder, registry=types()) as service:
            storage = HoldfastCheckpointStorage(service, registry=types())
            saved = made()
            await storage.save(saved)
            place = f"agent-framework/report/{saved.checkpoint_id}@1"
            await forge(service, place, "report", senders=7)
            with pytest.raises(holdfast.CheckpointCorruptError, match="no checkpoint"):
                await storage.load("forged")
            await forge(service, place, "report", metadata={"checkpoint_id": "forged", "run": "os.system"})
            with pytest.raises(holdfast.CheckpointCorruptError, match="no checkpoint"):
                await storage.load("forged")

    asyncio.run(main())


def test_a_stored_type_that_was_not_allowed_is_never_looked_up():
    registry = checkpoint_types()
    for tree in ("os.system", ["builtins.list", "subprocess.Popen"], "builtins.eval"):
        members = {"request_id": "r", "source_executor_id": "a", "request_data": "?", "response_type": tree}
        with pytest.raises(CheckpointSchemaError):
            registry.revive({"$hf": "obj", "t": "agent_framework.WorkflowEvent", "v": members})


# Cost


@pytest.mark.filterwarnings("ignore::holdfast.domain.errors.StateSizeWarning")
def test_a_growing_history_costs_what_was_added(tmp_path, folder):
    turns, text = 300, "x%05d" * 340

    async def work(storage):
        history: list[Message] = []
        previous = None
        for turn in range(turns):
            history.append(Message("user", [text.replace("%05d", f"{turn:05d}")]))
            state = {"_executor_state": {"a": {"full_conversation": list(history)}}}
            previous = await storage.save(made(previous=previous, state=state, iteration_count=turn))

    on(folder, work)
    stored = sum(path.stat().st_size for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert stored <= turns * (3 * len(text.replace("%05d", "00000")) + 2048)


def test_decimals_and_times_are_not_turned_into_text(folder):
    state = {"price": Decimal("1.10"), "at": datetime(2026, 1, 1, tzinfo=UTC), "path": Path("a/b")}
    assert on(folder, lambda s: round_trip(s, made(state=state))).state == state
