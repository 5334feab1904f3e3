"""The store of conversations for Pydantic AI: its contract, races, names, sizes and attacks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationEntry, ConversationRecord
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import DeferredToolRequests

import holdfast
from holdfast.domain.errors import CheckpointCorruptError, LeaseHeldError
from holdfast.integrations.pydantic_ai_conversations import HoldfastConversationStore
from tests.integrations.pydantic_ai_agents import durable_agent, says


@pytest.fixture(params=["file", "sqlite", "memory"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[holdfast.CheckpointService]:
    url = "memory:" if request.param == "memory" else f"{request.param}:{tmp_path}/store"
    with holdfast.open(url) as opened:
        yield opened


@pytest.fixture
def store(service: holdfast.CheckpointService) -> HoldfastConversationStore:
    return HoldfastConversationStore(service)


def asked(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(text)])


def answered(text: str) -> ModelMessage:
    return ModelResponse(parts=[TextPart(text)])


def conversation(name: str = "c", turns: int = 2) -> Conversation:
    messages = [one for turn in range(turns) for one in (asked(f"q{turn}"), answered(f"a{turn}"))]
    return Conversation(conversation_id=name, messages=messages)


async def loaded(store: HoldfastConversationStore, name: str = "c", **more: Any) -> Conversation:
    found = await store.load(name, **more)
    assert found is not None
    return found


def test_what_was_saved_is_loaded_by_another(service: holdfast.CheckpointService) -> None:
    async def go() -> None:
        saved = conversation()
        entries = await HoldfastConversationStore(service).save(saved, scope="ann")
        other = HoldfastConversationStore(service)
        found = await loaded(other)
        assert found.messages == saved.messages and found.revision == saved.revision
        assert [await other.read_entry(entry.id) for entry in entries] == entries
        assert await other.load_entries("c") == entries
        assert await other.load("nobody") is None
        assert (await loaded(other, limit=1)).messages == saved.messages[-1:]
        assert (await loaded(other, limit=0)).messages == []
        assert await other.load("c", scope="bob") is None

    asyncio.run(go())


def test_messages_are_messages_to_whoever_looks(store: Any, service: holdfast.CheckpointService) -> None:
    asyncio.run(store.save(conversation()))
    state = service.load_latest("conversation:c")
    assert state is not None and state.messages[0]["parts"][0]["content"] == "q0"
    assert service.diff_checkpoints("conversation:c@1", "conversation:c@1") == []


def test_every_kind_of_message_comes_back(store: HoldfastConversationStore) -> None:
    call = ToolCallPart("look", {"at": [1, {"$hf": "date", "v": "x"}]}, tool_call_id="1")
    kinds: list[ModelMessage] = [
        ModelRequest(
            parts=[UserPromptPart(["see", BinaryContent(b"\x00\xff", media_type="application/pdf")])]
        ),
        ModelResponse(parts=[ThinkingPart("hm", signature="s"), TextPart("NUL \0 and \u2028"), call]),
        ModelRequest(parts=[ToolReturnPart("look", {"lc": 1, "type": "constructor"}, tool_call_id="1")]),
    ]
    waiting = DeferredToolRequests(approvals=[call], metadata={"1": {"why": "costly"}})

    async def go() -> None:
        given = Conversation(conversation_id="c", messages=kinds, deferred_tool_requests=waiting)
        given.usage.requests = 3
        await store.save(given)
        found = await loaded(store)
        assert found.messages == kinds
        assert found.deferred_tool_requests == waiting and found.usage == given.usage

    asyncio.run(go())


def test_who_saves_what_changed_meanwhile_is_told(store: HoldfastConversationStore) -> None:
    async def go() -> None:
        await store.save(conversation())
        first, second = await loaded(store), await loaded(store)
        first.messages.append(asked("first"))
        second.messages.append(asked("second"))
        await store.save(first)
        with pytest.raises(ConversationConflict):
            await store.save(second)
        with pytest.raises(ConversationConflict):
            await store.save(conversation())
        assert (await loaded(store)).messages == first.messages

    asyncio.run(go())


def test_the_same_write_again_changes_nothing(store: Any, service: holdfast.CheckpointService) -> None:
    entry = ConversationEntry(parent_id=None, message=asked("q"))
    record = ConversationRecord(conversation_id="c", head_id=entry.id)

    async def go() -> None:
        for _ in range(2):
            await store.write_record(record, new_entries=[entry], expected_revision=None)
        assert await store.read_record("c") == record
        assert len(service.list_checkpoints("conversation:c")) == 1
        dangling = ConversationRecord(conversation_id="d", head_id="nowhere")
        with pytest.raises(ConversationConflict):
            await store.write_record(dangling, expected_revision=None)

    asyncio.run(go())


def test_branches_and_forks_keep_what_they_left(store: HoldfastConversationStore) -> None:
    async def go() -> None:
        saved = conversation(turns=3)
        entries = await store.save(saved, scope="ann")
        branched = await store.branch("c", at=2, expected_revision=saved.revision)
        branched.messages.append(asked("another way"))
        await store.save(branched)
        assert len((await loaded(store)).messages) == 3
        fork = await store.fork("c", from_entry=entries[-1].id, new_conversation_id="f")
        assert fork.messages == saved.messages
        fork.messages.append(asked("on"))
        await store.save(fork)
        back = await store.branch("c", from_entry=entries[-1].id, expected_revision=branched.revision)
        assert back.messages == saved.messages
        await store.delete("c")
        assert (await loaded(store, "f")).messages == fork.messages
        with pytest.raises(UserError, match="not in the store"):
            await store.fork("c")

    asyncio.run(go())


def test_a_deleted_conversation_is_gone_and_may_begin_again(store: HoldfastConversationStore) -> None:
    async def go() -> None:
        old = conversation()
        [first, *_] = await store.save(old)
        with pytest.raises(ConversationConflict):
            await store.delete_record("c", expected_revision="another")
        await store.delete("c")
        assert await store.load("c") is None and await store.list_conversations() == []
        with pytest.raises(LookupError):
            await store.read_entry(first.id)
        with pytest.raises(ConversationConflict):
            await store.save(old)
        await store.save(conversation(turns=1))
        assert len((await loaded(store)).messages) == 2

    asyncio.run(go())


def test_conversations_are_listed_by_scope_newest_first(store: HoldfastConversationStore) -> None:
    async def go() -> None:
        for name, scope in (("a", "ann"), ("b", "bob"), ("c", "ann")):
            await store.save(conversation(name), scope=scope)
        assert [one.conversation_id for one in await store.list_conversations()] == ["c", "b", "a"]
        assert [one.conversation_id for one in await store.list_conversations(scope="ann", limit=1)] == ["c"]

    asyncio.run(go())


def test_an_agent_talks_on_with_it(store: HoldfastConversationStore) -> None:
    agent = durable_agent(lambda returned: says("yes"), [])

    async def go() -> None:
        for turn in range(3):
            known = await store.load("chat") or Conversation(conversation_id="chat")
            assert len(known.messages) == 2 * turn
            await store.save(await agent.run(f"turn {turn}", conversation=known))
        assert (await loaded(store, "chat")).usage.requests == 3

    asyncio.run(go())


def test_a_url_is_opened_and_closed_here(tmp_path: Path) -> None:
    async def go() -> None:
        for turns in range(1, 3):
            async with HoldfastConversationStore(f"file:{tmp_path}") as store:
                known = await store.load("c") or Conversation(conversation_id="c")
                known.messages.append(asked(str(turns)))
                await store.save(known)
                assert len((await loaded(store)).messages) == turns

    asyncio.run(go())


def test_a_lease_of_another_is_no_conflict(
    store: Any, service: holdfast.CheckpointService, tmp_path: Path
) -> None:
    service.acquire_lease("conversation:c", "somebody")
    service.create_checkpoint("conversation:other", {})
    if service.recording.url.startswith("memory"):
        return
    with holdfast.open(service.recording.url) as other, pytest.raises(LeaseHeldError):
        asyncio.run(HoldfastConversationStore(other).save(conversation()))


def add_turns(url: str, name: str, worker: int) -> None:
    """Add three messages to a conversation that others add to as well."""

    async def go() -> None:
        async with HoldfastConversationStore(url) as store:
            for turn in range(3):
                while True:
                    known = await store.load(name) or Conversation(conversation_id=name)
                    known.messages.append(asked(f"{worker}.{turn}"))
                    try:
                        await store.save(known)
                        break
                    except ConversationConflict:
                        continue

    asyncio.run(go())


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_eight_writers_lose_nothing(scheme: str, tmp_path: Path) -> None:
    url = f"{scheme}:{tmp_path}/store"
    holdfast.open(url).close()
    with ThreadPoolExecutor(8) as threads:
        one = [threads.submit(add_turns, url, "shared", worker) for worker in range(4)]
        many = [threads.submit(add_turns, url, f"own-{worker}", worker) for worker in range(4)]
        for future in (*one, *many):
            future.result()
    with holdfast.open(url) as service:
        state = service.load_latest("conversation:shared")
        assert state is not None
        texts = {message["parts"][0]["content"] for message in state.messages}
        assert texts == {f"{worker}.{turn}" for worker in range(4) for turn in range(3)}
        assert len(state.messages) == 12 and len(service.workflows()) == 5


@pytest.mark.parametrize(
    "name", ["../../etc", "a\0b", "x" * 500, " ", "a%20b", "wf@3", "ü\u2028", "con", ".."]
)
def test_hostile_names_are_names(name: str, store: HoldfastConversationStore) -> None:
    async def go() -> None:
        await store.save(conversation(name))
        assert (await loaded(store, name)).conversation_id == name
        assert [one.conversation_id for one in await store.list_conversations()] == [name]

    asyncio.run(go())


def test_halves_of_surrogate_pairs_come_back(store: HoldfastConversationStore) -> None:
    async def go() -> None:
        broken = Conversation(conversation_id="\udfff", messages=[asked("\ud800")])
        await store.save(broken)
        assert (await loaded(store, "\udfff")).messages == broken.messages
        assert await store.load("%ED%BF%BF") is None

    asyncio.run(go())


@pytest.mark.parametrize("harm", ["record", "entries", "message", "circle", "gap"])
def test_a_record_that_was_forged_is_refused(
    harm: str, store: Any, service: holdfast.CheckpointService
) -> None:
    asyncio.run(store.save(conversation()))
    checkpoint, state = service.get_by_id("conversation:c@latest"), service.load_latest("conversation:c")
    assert checkpoint is not None and state is not None
    record = dict(checkpoint.agent_state["record"])
    first, *_, last = state.context["entries"]
    if harm == "record":
        record["usage"] = "os.system"
    elif harm == "entries":
        state.context["entries"] = {"__reduce__": "os.system"}
    elif harm == "message":
        state.messages[-1] = {"kind": "os.system", "parts": []}
    elif harm == "circle":
        first[1] = last[0]
    else:
        del state.context["entries"][1]
    options: Any = {"agent_id": "conversation", "agent_state": {"record": record}}
    service.create_checkpoint("conversation:c", state, **options)
    with pytest.raises(CheckpointCorruptError):
        asyncio.run(store.load("c"))


def test_the_record_of_another_is_refused(store: Any, service: holdfast.CheckpointService) -> None:
    asyncio.run(store.save(conversation("mine")))
    service.fork_workflow("conversation:mine@latest", "conversation:yours")
    mine, state = service.get_by_id("conversation:mine@latest"), service.load_latest("conversation:yours")
    assert mine is not None and state is not None
    options: Any = {"agent_id": "conversation", "agent_state": mine.agent_state, "force": True}
    service.create_checkpoint("conversation:yours", state, **options)
    with pytest.raises(CheckpointCorruptError, match="another"):
        asyncio.run(store.load("yours"))


def test_bytes_that_somebody_changed_are_refused(tmp_path: Path) -> None:
    async def go() -> None:
        async with HoldfastConversationStore(f"file:{tmp_path}") as store:
            await store.save(conversation())
        for path in (tmp_path / "checkpoints").rglob("*"):
            if path.is_file():
                path.write_bytes(path.read_bytes().replace(b'"q0"', b'"Q0"'))
        async with HoldfastConversationStore(f"file:{tmp_path}") as store:
            with pytest.raises(CheckpointCorruptError):
                await store.load("c")

    asyncio.run(go())


def test_a_long_conversation_costs_what_is_added(tmp_path: Path) -> None:
    turns, text_bytes = 300, 2040

    async def go(service: holdfast.CheckpointService) -> None:
        store, known = HoldfastConversationStore(service), Conversation(conversation_id="c")
        for turn in range(turns):
            known.messages.append(asked(f"{turn:06}" * (text_bytes // 6)))
            await store.save(known)

    with holdfast.open(f"file:{tmp_path}", warn_bytes=10_000_000) as service:
        asyncio.run(go(service))
    stored = sum(path.stat().st_size for path in (tmp_path / "checkpoints").rglob("*") if path.is_file())
    assert stored <= 3 * turns * text_bytes + 2048 * turns
