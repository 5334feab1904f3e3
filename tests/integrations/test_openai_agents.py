"""Conversations: the SDK's contract on each store, writers at once, and what must not come in or go out."""

from __future__ import annotations

import asyncio
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from pathlib import Path

import pytest
from agents import Runner
from agents.memory import Session, SessionSettings
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.domain.errors import InvalidIdError, RedactedStateWarning
from holdfast.integrations.openai_agents import HoldfastSession
from tests.integrations.openai_agents_scene import STORES, payer, run


def said(text: str) -> dict:
    return {"role": "user", "content": text}


@pytest.fixture(params=STORES)
def url(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return request.param


def texts(items) -> list[str]:
    return [item["content"] for item in items]


def test_it_is_a_session_to_the_sdk():
    assert isinstance(HoldfastSession("s", "memory:"), Session)


def test_each_method_does_what_the_protocol_says(url):
    async def work():
        async with HoldfastSession("s", url) as session:
            assert await session.get_items() == []
            assert await session.pop_item() is None
            await session.add_items([])
            await session.add_items([said("a"), said("b")])
            await session.add_items([said("c")])
            assert texts(await session.get_items()) == ["a", "b", "c"]
            assert texts(await session.get_items(2)) == ["b", "c"]
            assert texts(await session.get_items(9)) == ["a", "b", "c"]
            assert await session.get_items(0) == []
            assert await session.pop_item() == said("c")
            await session.rewind(1)
            assert texts(await session.get_items()) == ["a"]
            await session.clear_session()
            assert await session.get_items() == []
            await session.add_items([said("d")])
            assert texts(await session.get_items()) == ["d"]

    run(work)


def test_the_limit_of_the_settings_counts_where_none_is_given():
    async def work():
        async with HoldfastSession("s", "memory:", session_settings=SessionSettings(limit=1)) as session:
            await session.add_items([said("a"), said("b")])
            assert texts(await session.get_items()) == ["b"]
            assert texts(await session.get_items(2)) == ["a", "b"]

    run(work)


def test_the_runner_remembers_what_another_process_was_told(tmp_path):
    async def turn(text):
        async with HoldfastSession("s", f"file:{tmp_path}/store") as session:
            return (await Runner.run(payer(), text, session=session)).final_output

    assert run(lambda: turn("hello")) == "1 items: hello"
    assert run(lambda: turn("again")) == "3 items: again"


def test_items_are_the_messages_of_a_workflow_that_holdfast_shows(tmp_path):
    with holdfast.open(f"file:{tmp_path}/store") as service:
        run(lambda: HoldfastSession("ann/1", service).add_items([said("hello")]))
        assert service.workflows() == ["agents-session:ann%2F1"]
        state = service.load_latest("agents-session:ann%2F1")
        assert state is not None
        assert state.messages == [said("hello")] and state.metadata == {"session": "'ann/1'"}


def test_a_service_that_was_given_stays_open():
    async def work(service):
        async with HoldfastSession("s", service) as session:
            await session.add_items([said("a")])

    with holdfast.open("memory:") as service:
        run(lambda: work(service))
        assert len(service.list_checkpoints("agents-session:s")) == 1


def test_closing_a_session_that_was_never_used_opens_nothing(tmp_path):
    run(lambda: HoldfastSession("s", f"file:{tmp_path}/store").close())
    assert not (tmp_path / "store").exists()


def test_eight_tasks_and_eight_threads_on_one_conversation_lose_nothing(url):
    async def task(session, name):
        for number in range(4):
            await session.add_items([said(f"{name}-{number}")])

    async def tasks(session, names):
        await asyncio.gather(*(task(session, name) for name in names))

    with holdfast.open(url) as service, ThreadPoolExecutor(8) as threads:
        session = HoldfastSession("s", service)
        run(lambda: tasks(session, [f"task{number}" for number in range(8)]))
        done = [threads.submit(run, partial(task, session, f"thread{n}")) for n in range(8)]
        for one in done:
            one.result()
        found = texts(run(session.get_items))
    assert len(found) == 64 == len(set(found))
    for name in {text.partition("-")[0] for text in found}:
        assert [text for text in found if text.startswith(f"{name}-")] == [f"{name}-{n}" for n in range(4)]


def test_two_services_on_one_conversation_lose_nothing(tmp_path):
    async def work():
        sessions = [HoldfastSession("s", f"sqlite:{tmp_path}/store.db") for _ in range(2)]
        for number in range(3):
            await asyncio.gather(*(one.add_items([said(f"{number}")]) for one in sessions))
        assert sorted(texts(await sessions[0].get_items())) == ["0", "0", "1", "1", "2", "2"]
        popped = await asyncio.gather(*(one.pop_item() for one in sessions))
        assert texts(popped) == ["2", "2"]
        for one in sessions:
            await one.close()

    run(work)


def test_eight_conversations_at_once_stay_apart(url):
    async def work(service):
        sessions = [HoldfastSession(f"s{number}", service) for number in range(8)]
        await asyncio.gather(*(one.add_items([said(one.session_id)]) for one in sessions for _ in range(3)))
        for one in sessions:
            assert texts(await one.get_items()) == [one.session_id] * 3

    with holdfast.open(url) as service:
        run(lambda: work(service))


def test_a_conversation_that_another_owner_has_is_not_written(tmp_path):
    with holdfast.open(f"file:{tmp_path}/store") as service, holdfast.open(f"file:{tmp_path}/store") as other:
        other.acquire_lease("agents-session:s", "somebody else")
        with pytest.raises(holdfast.LeaseHeldError):
            run(lambda: HoldfastSession("s", service).add_items([said("a")]))


def test_a_writer_that_is_overtaken_for_ever_says_so(monkeypatch):
    monkeypatch.setattr("holdfast.integrations.openai_agents._sequence", lambda state: 7)
    with holdfast.open("memory:") as service:
        run(lambda: HoldfastSession("s", service).add_items([said("a")]))
        with pytest.raises(holdfast.CheckpointConflictError):
            run(lambda: HoldfastSession("s", service).add_items([said("b")]))


def test_a_cancelled_call_is_decided_before_it_ends():
    async def work(service):
        session = HoldfastSession("s", service)
        task = asyncio.ensure_future(session.add_items([said("a")]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(service.list_checkpoints(session.workflow_id))

    with holdfast.open("memory:") as service:
        assert run(lambda: work(service)) == 1


def test_what_is_no_json_is_refused_and_nothing_is_written():
    with holdfast.open("memory:") as service:
        with pytest.raises(TypeError):
            run(lambda: HoldfastSession("s", service).add_items([said("a"), {"content": object()}]))
        assert service.workflows() == []


def test_what_somebody_else_put_into_a_conversation_and_is_no_json_is_refused():
    with holdfast.open("memory:") as service:
        service.create_checkpoint(
            "agents-session:s", holdfast.WorkflowState(messages=[{"content": date(2026, 1, 1)}])
        )
        with pytest.raises(holdfast.CheckpointCorruptError, match="no item"):
            run(HoldfastSession("s", service).get_items)


def test_secrets_of_a_conversation_do_not_reach_the_disk_and_that_is_told(tmp_path):
    async def work():
        async with HoldfastSession("s", f"file:{tmp_path}/store") as session:
            await session.add_items([said("DB_PASSWORD=tr0ub4dor make deploy")])
            with pytest.warns(RedactedStateWarning):
                [item] = await session.get_items()
        assert "[REDACTED:" in item["content"]

    run(work)
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"tr0ub4dor" not in stored


def test_an_id_that_is_a_credential_is_refused():
    with holdfast.open("memory:") as service, pytest.raises(InvalidIdError):
        run(lambda: HoldfastSession("ghp_" + "a1B2" * 9, service).add_items([said("a")]))


def test_a_long_conversation_costs_what_was_added(tmp_path):
    turns, text_bytes = 100, 2000

    async def work():
        async with HoldfastSession("s", f"file:{tmp_path}/store") as session:
            for _ in range(turns):
                await session.add_items([said(os.urandom(text_bytes // 4).hex()) for _ in range(2)])

    run(work)
    stored = sum(path.stat().st_size for path in Path(tmp_path).rglob("*") if path.is_file())
    assert stored < turns * (3 * text_bytes + 2048)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TAGS = st.sampled_from(["$t", "__type__", "lc", "py/object", "$type", "!", "__holdfast__"])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.dictionaries(TAGS | st.text(), JSON, max_size=4), max_size=4))
def test_items_come_back_as_they_were_whatever_they_look_like(items):
    with holdfast.open("memory:", redact=False) as service:
        session = HoldfastSession("s", service)
        run(lambda: session.add_items(items))
        assert run(session.get_items) == items


def test_lone_surrogates_and_nul_come_back(tmp_path):
    async def work():
        async with HoldfastSession("s\ud800\x00", f"file:{tmp_path}/store") as session:
            await session.add_items([said("\ud800 \x00 \x1b[31m \u2028")])
        async with HoldfastSession("s\ud800\x00", f"file:{tmp_path}/store") as session:
            return texts(await session.get_items())

    assert run(work) == ["\ud800 \x00 \x1b[31m \u2028"]


def test_a_name_too_long_for_an_id_works_and_is_told_in_the_state():
    with tempfile.TemporaryDirectory() as folder, holdfast.open(f"file:{folder}/store") as service:
        session = HoldfastSession("long " * 100, service)
        run(lambda: session.add_items([said("a")]))
        state = service.load_latest(session.workflow_id)
        assert state is not None and state.metadata["session"] == repr("long " * 100)
