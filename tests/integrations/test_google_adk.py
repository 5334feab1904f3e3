"""`HoldfastSessionService`: ADK's contract, shared state, conflicts, and stores that were tampered with."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

os.environ["OTEL_SDK_DISABLED"] = "true"

import pytest
from google.adk.agents import LlmAgent
from google.adk.errors import StaleSessionError
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from holdfast import CheckpointCorruptError, WorkflowState
from holdfast.domain.errors import CheckpointError, CheckpointWriteError, LegalHoldError
from holdfast.integrations.google_adk import HoldfastSessionService
from holdfast.integrations.names import workflow_name

WHO = {"app_name": "reef", "user_id": "ann", "session_id": "s-1"}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = st.sampled_from(["a", "b", "app:a", "app:b", "user:a", "user:b", "temp:a", "other:a"])


@pytest.fixture(params=["memory:", "file:{}/store", "sqlite:{}/store.db"], ids=["memory", "file", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(request.param).format(tmp_path)


def looped(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test that is a coroutine in a loop of its own."""

    @functools.wraps(test)
    def run(*given: Any, **named: Any) -> None:
        asyncio.run(test(*given, **named))

    return run


def said(text: str, author: str = "user", **delta: Any) -> Event:
    changes = {key.replace("__", ":"): value for key, value in delta.items()}
    content = types.Content(role="user" if author == "user" else "model", parts=[types.Part(text=text)])
    return Event(
        author=author, invocation_id="i-1", content=content, actions=EventActions(state_delta=changes)
    )


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def texts(session: Any) -> list[str]:
    return [event.content.parts[0].text for event in session.events if event.content]


@looped
async def test_a_session_is_created_got_listed_and_deleted(url: str) -> None:
    async with HoldfastSessionService(url) as service:
        made = await service.create_session(**WHO, state={"a": 1, "app:b": 2, "user:c": 3, "temp:d": 4})
        assert made.state == {"a": 1, "app:b": 2, "user:c": 3} and made.id == "s-1"
        got = await service.get_session(**WHO)
        assert got == made
        with pytest.raises(AlreadyExistsError):
            await service.create_session(**WHO)
        await service.create_session(app_name="reef", user_id="bob")
        listed = (await service.list_sessions(app_name="reef")).sessions
        assert [(one.user_id, one.state.get("app:b"), one.events) for one in listed] == [
            ("ann", 2, []),
            ("bob", 2, []),
        ]
        assert [one.id for one in (await service.list_sessions(app_name="reef", user_id="ann")).sessions] == [
            "s-1"
        ]
        assert (await service.list_sessions(app_name="ree")).sessions == []
        await service.delete_session(**WHO)
        await service.delete_session(**WHO)
        assert await service.get_session(**WHO) is None
        assert [one.user_id for one in (await service.list_sessions(app_name="reef")).sessions] == ["bob"]
        assert await service.get_user_state(app_name="reef", user_id="ann") == {"c": 3}


@looped
async def test_events_and_state_come_back_as_they_were(url: str) -> None:
    async with HoldfastSessionService(url) as service:
        session = await service.create_session(**WHO)
        event = said("hello \x00 \ud800", a=[1, {"b": None}], app__x={"__type__": "os.system"}, temp__t=1)
        assert await service.append_event(session, event) is event
        assert session.state["temp:t"] == 1 and "temp:t" not in event.actions.state_delta
        blob = types.Content(role="model", parts=[types.Part.from_bytes(data=b"\x00\xff", mime_type="x/y")])
        await service.append_event(
            session, Event(author="bot", content=blob, long_running_tool_ids={"b", "a"})
        )
        partial = Event(author="bot", partial=True, content=blob)
        assert await service.append_event(session, partial) is partial
        got = await service.get_session(**WHO)
        assert got is not None and got.events == session.events and len(got.events) == 2
        assert got.state == {"a": [1, {"b": None}], "app:x": {"__type__": "os.system"}}
        assert got.last_update_time == session.events[-1].timestamp == session.last_update_time


@looped
async def test_only_the_events_asked_for_are_got() -> None:
    async with HoldfastSessionService("memory:") as service:
        session = await service.create_session(**WHO)
        for at in range(5):
            event = said(str(at))
            event.timestamp = 1000.0 + at
            await service.append_event(session, event)

        async def got(**config: Any) -> list[float]:
            found = await service.get_session(**WHO, config=GetSessionConfig(**config))
            assert found is not None
            return [event.timestamp - 1000 for event in found.events]

        assert await got() == [0, 1, 2, 3, 4]
        assert await got(num_recent_events=2) == [3, 4]
        assert await got(num_recent_events=0) == []
        assert await got(num_recent_events=9) == [0, 1, 2, 3, 4]
        assert await got(after_timestamp=1003.0) == [3, 4]
        assert await got(after_timestamp=1001.0, num_recent_events=1) == [4]
        recent = await service.get_session(**WHO, config=GetSessionConfig(num_recent_events=1))
        assert recent is not None
        await service.append_event(recent, said("more"))
        whole = await service.get_session(**WHO)
        assert whole is not None and len(whole.events) == 6


@looped
async def test_whoever_holds_an_old_session_is_told(url: str) -> None:
    async with HoldfastSessionService(url) as service:
        await service.create_session(**WHO)
        first, second = await service.get_session(**WHO), await service.get_session(**WHO)
        assert first is not None and second is not None
        await service.append_event(first, said("one"))
        with pytest.raises(StaleSessionError):
            await service.append_event(second, said("two", app__a=1, user__a=1))
        assert second.events == [] and second.state == {}
        fresh = await service.get_session(**WHO)
        assert fresh is not None and fresh.state == {} and len(fresh.events) == 1
        await service.append_event(fresh, said("two"))


@looped
async def test_two_services_on_one_store_never_overwrite_each_other(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/store"
    async with HoldfastSessionService(url) as ours, HoldfastSessionService(url) as theirs:
        await ours.create_session(**WHO)
        mine, other = await ours.get_session(**WHO), await theirs.get_session(**WHO)
        assert mine is not None and other is not None
        await ours.append_event(mine, said("one"))
        with pytest.raises(StaleSessionError):
            await theirs.append_event(other, said("two", app__a=1))
        other = await theirs.get_session(**WHO)
        assert other is not None
        await theirs.append_event(other, said("two", app__a=2))
        # What this service remembers is what the session was got from, and not what is stored.
        with pytest.raises(StaleSessionError):
            await ours.append_event(mine, said("late", app__a=9))
        # What this service remembers is older than what it gets now.
        mine = await ours.get_session(**WHO)
        assert mine is not None and mine.state == {"app:a": 2}
        await ours.append_event(mine, said("three", app__b=3))
        other = await theirs.get_session(**WHO)
        assert other is not None and other.state == {"app:a": 2, "app:b": 3}


@looped
async def test_many_sessions_may_be_written_in_turn() -> None:
    async with HoldfastSessionService("memory:") as service:
        sessions = [await service.create_session(app_name="reef", user_id=f"u{at}") for at in range(70)]
        for text in ("one", "two"):
            for session in sessions:
                await service.append_event(session, said(text))
        assert len(service._known) == 64 and all(texts(one) == ["one", "two"] for one in sessions)


@looped
async def test_an_event_is_not_stored_again_when_its_call_is_repeated(url: str) -> None:
    async with HoldfastSessionService(url) as service:
        session = await service.create_session(**WHO)
        before = session.model_copy(deep=True)
        before._storage_update_marker = session._storage_update_marker
        event = said("once", app__a=1)
        await service.append_event(session, event)
        await service.append_event(session, event)
        # As after an error that left open whether it was stored.
        await service.append_event(before, event)
        assert [one.id for one in before.events] == [event.id] == [one.id for one in session.events]
        await service.append_event(before, said("next"))
        got = await service.get_session(**WHO)
        assert got is not None and len(got.events) == 2


@looped
async def test_a_session_made_by_hand_is_taken_if_it_holds_what_is_stored() -> None:
    async with HoldfastSessionService("memory:") as service:
        session = await service.create_session(**WHO)
        await service.append_event(session, said("one"))
        by_hand = Session(id="s-1", app_name="reef", user_id="ann", events=list(session.events))
        await service.append_event(by_hand, said("two"))
        with pytest.raises(StaleSessionError):
            await service.append_event(Session(id="s-1", app_name="reef", user_id="ann"), said("three"))


@looped
async def test_a_deleted_session_cannot_be_written_and_may_be_created_again(url: str) -> None:
    async with HoldfastSessionService(url) as service:
        old = await service.create_session(**WHO)
        await service.append_event(old, said("secret words", user__a=1))
        await service.delete_session(**WHO)
        with pytest.raises(SessionNotFoundError):
            await service.append_event(old, said("late"))
        new = await service.create_session(**WHO, state={"app:again": True})
        assert new.events == [] and new.state == {"app:again": True, "user:a": 1}
        with pytest.raises(StaleSessionError):
            await service.append_event(old, said("late"))
        await service.append_event(new, said("new words"))


@looped
async def test_nothing_of_a_deleted_session_is_left_in_the_files(tmp_path: Path) -> None:
    async with HoldfastSessionService(f"file:{tmp_path}/store") as service:
        session = await service.create_session(**WHO)
        for _ in range(40):
            await service.append_event(session, said("secret words"))
        await service.delete_session(**WHO)
    assert not [path for path in files(tmp_path) if b"secret words" in path.read_bytes()]


@looped
async def test_a_session_under_a_legal_hold_is_not_deleted() -> None:
    async with holdfast.open_async("memory:") as store:
        service = HoldfastSessionService(store)
        await service.create_session(**WHO)
        store.holds.place(workflow_id=workflow_name("adk/", *WHO.values()), reason="case 7")
        with pytest.raises(LegalHoldError):
            await service.delete_session(**WHO)
        assert await service.get_session(**WHO) is not None
        await service.close()
        assert await store.workflows()


@pytest.mark.parametrize("is_committed", [True, False])
@looped
async def test_a_change_that_was_cut_short_counts_if_its_event_is_stored(is_committed: bool) -> None:
    async with holdfast.open_async("memory:") as store:
        service = HoldfastSessionService(store)
        session = await service.create_session(**WHO, state={"app:a": 0})
        stale = await service.get_session(**WHO)
        assert stale is not None
        name, scope = workflow_name("adk/", *WHO.values()), workflow_name("adk-app/", "reef")
        event = said("cut short", app__a=1)
        await service.append_event(session, event)
        # Put the scope back to what it was between the announcement and its end, as a kill leaves it.
        intent = {"session": name, "after": 1, "cause": event.id if is_committed else "x", "delta": {"a": 1}}
        state = await store.load_latest(scope)
        assert state is not None
        state.context = {"state": {"a": 0}, "pending": [intent, {**intent, "session": "adk/none"}]}
        await store.create_checkpoint(scope, state)
        got = await service.get_session(**WHO)
        assert got is not None and got.state["app:a"] == is_committed
        other = await service.create_session(app_name="reef", user_id="bob", state={"app:b": 2})
        assert other.state == {"app:a": int(is_committed), "app:b": 2}
        settled = await store.load_latest(scope)
        assert settled is not None and [one["session"] for one in settled.context["pending"]] == ["adk/none"]


@looped
async def test_a_damaged_session_keeps_nobody_from_what_is_shared(tmp_path: Path) -> None:
    async with HoldfastSessionService(f"file:{tmp_path}/store") as service:
        await service.create_session(**WHO)
        await service.create_session(app_name="reef", user_id="bob", session_id="s-2", state={"app:b": 2})
        store = await service._shelf.service()
        state = await store.load_latest(workflow_name("adk-app/", "reef"))
        assert state is not None
        intent = {"session": workflow_name("adk/", *WHO.values()), "after": 0, "cause": "x", "delta": {}}
        state.context["pending"] = [intent]
        await store.create_checkpoint(workflow_name("adk-app/", "reef"), state)
    [damaged] = (tmp_path / "store" / "checkpoints").rglob("adk-reef-ann-s-1~*/checkpoint_000001.json")
    damaged.write_bytes(damaged.read_bytes().replace(b"reef", b"leaf"))
    async with HoldfastSessionService(f"file:{tmp_path}/store") as service:
        got = await service.get_session(app_name="reef", user_id="bob", session_id="s-2")
        assert got is not None and got.state == {"app:b": 2}
        with pytest.raises(CheckpointError):
            await service.get_session(**WHO)


@looped
async def test_eight_tasks_on_one_session_lose_nothing(url: str) -> None:
    async with HoldfastSessionService(url) as service:
        await service.create_session(**WHO)

        async def write(task: int) -> None:
            for turn in range(3):
                while True:
                    session = await service.get_session(**WHO)
                    assert session is not None
                    try:
                        await service.append_event(session, said(f"{task} {turn}", **{f"app__{task}": turn}))
                        break
                    except StaleSessionError:
                        continue

        await asyncio.gather(*map(write, range(8)))
        session = await service.get_session(**WHO)
        assert session is not None
        assert sorted(texts(session)) == sorted(f"{task} {turn}" for task in range(8) for turn in range(3))
        assert session.state == {f"app:{task}": 2 for task in range(8)}


@looped
async def test_eight_tasks_on_sessions_of_their_own_share_every_change(tmp_path: Path) -> None:
    url = f"file:{tmp_path}/store"
    async with HoldfastSessionService(url) as ours, HoldfastSessionService(url) as theirs:

        async def write(task: int) -> None:
            service = (ours, theirs)[task % 2]
            session = await service.create_session(app_name="reef", user_id=f"u{task % 3}")
            for turn in range(3):
                delta = {f"app__{task}-{turn}": turn, f"user__{task}-{turn}": turn}
                await service.append_event(session, said("hi", **delta))

        await asyncio.gather(*map(write, range(8)))
        expected = {f"{task}-{turn}": turn for task in range(8) for turn in range(3)}
        session = await ours.create_session(app_name="reef", user_id="nobody")
        assert session.state == {f"app:{key}": value for key, value in expected.items()}
        shared = [await ours.get_user_state(app_name="reef", user_id=f"u{user}") for user in range(3)]
        assert {key: value for state in shared for key, value in state.items()} == expected


@looped
async def test_branches_that_share_one_session_object_wait_for_each_other(url: str) -> None:
    async with HoldfastSessionService(url) as service:
        session = await service.create_session(**WHO)
        await asyncio.gather(*(service.append_event(session, said(str(at))) for at in range(8)))
        got = await service.get_session(**WHO)
        assert got is not None and got.events == session.events and len(got.events) == 8


@looped
async def test_a_growing_session_costs_what_is_added(tmp_path: Path) -> None:
    async with holdfast.open_async(f"file:{tmp_path}/store", warn_bytes=10**8) as store:
        service = HoldfastSessionService(store)
        session = await service.create_session(**WHO)
        for _ in range(150):
            await service.append_event(session, said(os.urandom(1000).hex()))
    used = sum(path.stat().st_blocks * 512 for path in files(tmp_path))
    assert used < 150 * (3 * 2000 + 2000)


async def answered(self: Any, llm_request: Any, stream: bool = False) -> Any:
    text = llm_request.contents[-1].parts[-1].text
    yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=f"you said {text}")]))


#: A model that repeats what it was told.
Echo: Any = type("Echo", (BaseLlm,), {"generate_content_async": answered, "__module__": __name__})


@looped
async def test_a_runner_of_adk_talks_through_it_as_through_its_own(url: str) -> None:
    async with HoldfastSessionService(url) as service:
        ours, theirs = [await conversation(one) for one in (service, InMemorySessionService())]
        assert ours == theirs and "you said two" in ours


async def conversation(service: Any) -> list[str]:
    agent = LlmAgent(name="echo", model=Echo(model="echo"), output_key="user:last")
    runner = Runner(app_name="reef", agent=agent, session_service=service, auto_create_session=True)
    for text in ("one", "two"):
        who = {"user_id": "ann", "session_id": "s-1"}
        async for _ in runner.run_async(**who, new_message=types.UserContent(text)):
            pass
    session = await service.get_session(**WHO)
    return [*texts(session), *sorted(f"{key}={value}" for key, value in session.state.items())]


def test_the_synchronous_runner_has_a_loop_of_its_own_for_each_run(tmp_path: Path) -> None:
    service = HoldfastSessionService(f"file:{tmp_path}/store")
    agent = LlmAgent(name="echo", model=Echo(model="echo"))
    runner = Runner(app_name="reef", agent=agent, session_service=service, auto_create_session=True)
    for text in ("one", "two"):
        answers: list[Any] = list(
            runner.run(user_id="ann", session_id="s-1", new_message=types.UserContent(text))
        )
        assert [part.text for part in answers[-1].content.parts] == [f"you said {text}"]
    asyncio.run(service.close())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.dictionaries(KEYS, JSON, max_size=4), max_size=4))
def test_state_is_what_adk_itself_would_keep(deltas: list[dict[str, Any]]) -> None:
    async def states(service: Any) -> list[dict[str, Any]]:
        session = await service.create_session(**WHO, state=deltas[0] if deltas else None)
        for delta in deltas[1:]:
            await service.append_event(
                session, Event(author="a", actions=EventActions(state_delta=dict(delta)))
            )
        other = await service.create_session(app_name="reef", user_id="bob")
        return [(await service.get_session(**WHO)).state, session.state, other.state]

    async def compare() -> None:
        async with HoldfastSessionService("memory:") as service:
            assert await states(service) == await states(InMemorySessionService())

    asyncio.run(compare())


@pytest.mark.parametrize(
    "hostile", ["../..", "a/b", "~" * 300, "a\x00b\n", "\ud800", "x" * 5000, "'; --", "ä" * 90]
)
@looped
async def test_hostile_names_are_names_like_any_other(hostile: str, tmp_path: Path) -> None:
    async with HoldfastSessionService(f"file:{tmp_path}/store") as service:
        made = await service.create_session(
            app_name=hostile, user_id=hostile, session_id=hostile, state={"user:a": 1}
        )
        await service.append_event(made, said("hello"))
        got = await service.get_session(app_name=hostile, user_id=hostile, session_id=hostile)
        assert got is not None and got.id == hostile.strip() and got.state == {"user:a": 1}
        [listed] = (await service.list_sessions(app_name=hostile, user_id=hostile)).sessions
        assert (listed.app_name, listed.user_id, listed.id) == (hostile, hostile, hostile.strip())
        assert await service.get_user_state(app_name=hostile, user_id=hostile) == {"a": 1}
    assert {path.relative_to(tmp_path).parts[0] for path in files(tmp_path)} == {"store"}


@looped
async def test_a_state_that_is_no_session_or_another_one_is_refused() -> None:
    async with holdfast.open_async("memory:") as store:
        service = HoldfastSessionService(store)
        name = workflow_name("adk/", *WHO.values())
        other = await service.create_session(app_name="reef", user_id="eve", session_id="s-1")
        swapped = await store.load_latest(workflow_name("adk/", "reef", "eve", other.id))
        assert swapped is not None
        swapped.workflow_id = ""
        await store.create_checkpoint(name, swapped)
        with pytest.raises(CheckpointCorruptError, match="another session"):
            await service.get_session(**WHO)
        names = dict(WHO)
        for wrong in (
            WorkflowState(metadata=names),
            WorkflowState(metadata=names, context={"state": {}, "last_update_time": "never"}),
            WorkflowState(
                metadata=names,
                context={"state": {}, "last_update_time": 1.0},
                messages=[{"author": "a", "actions": {"__reduce__": "os.system"}}],
            ),
        ):
            await store.create_checkpoint(name, wrong)
            with pytest.raises(CheckpointCorruptError, match="no session"):
                await service.get_session(**WHO)


@looped
async def test_a_scope_that_somebody_keeps_for_himself_stops_its_changes_and_nothing_else(
    tmp_path: Path,
) -> None:
    url = f"file:{tmp_path}/store"
    async with holdfast.open_async(url) as other, HoldfastSessionService(url) as service:
        session = await service.create_session(**WHO)
        lease = await other.acquire_lease(workflow_name("adk-app/", "reef"), "somebody")
        with pytest.raises(CheckpointWriteError, match="keep it"):
            await service.append_event(session, said("one", app__a=1))
        await service.append_event(session, said("two"))
        await other.release_lease(lease)
        await service.append_event(session, said("three", app__a=3))
        assert texts(session) == ["two", "three"]
