"""The state in memory is that of the store, whoever records, in whatever way, and whatever goes wrong."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.adapters.memory import MemoryStore
from holdfast.application.app import App
from holdfast.application.commands import AppendEvent
from holdfast.application.recording import Recording
from holdfast.domain.errors import (
    CheckpointWriteError,
    LeaseLostError,
    StateTooLargeError,
    UnsupportedTypeError,
)
from holdfast.domain.progress_report import REPORT_EVENT
from holdfast.domain.reducers import DECISION_EVENT, MESSAGE_EVENT
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_STARTED, RUN_UPDATED
from holdfast.domain.unwritten import Unwritten
from holdfast.execution.floor import floor
from holdfast.execution.journal import Care, Fact, Journal, Save
from tests.application.services import make_service
from tests.application.versions import Home
from tests.execution.journals import PATIENCE_SECONDS, W, at_once, begun, recovered
from tests.execution.narrow_stores import LARGE, NarrowStore
from tests.execution.runs import opened, told_to, types

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


@pytest.fixture(params=["memory", "sealed", "file", "sqlite"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(request.param, tmp_path)


def done(step_id: str, result: Any = None, **more: Any) -> Fact:
    return Fact(AGENT_COMPLETED, {"attempt": 1, "result": result, **more}, step_id, step_id)


def message(text: Any) -> Fact:
    return Fact(MESSAGE_EVENT, {"message": text}, "plan", "plan")


def in_a_crowd(work: Any) -> Any:
    """Run a coroutine on a loop where others work, so that nothing may keep the loop waiting."""

    async def crowded() -> Any:
        floor().working += 2
        try:
            return await asyncio.wait_for(work(), PATIENCE_SECONDS)
        finally:
            floor().working -= 2

    return asyncio.run(crowded())


values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-9, 9),
        st.text(max_size=3),
        st.binary(max_size=2),
        st.just((1, 2)),
    ),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["$hf", "a", "status"]), inner, max_size=2)
    ),
    max_leaves=4,
)
facts = st.one_of(
    st.builds(done, st.sampled_from(["plan", "write", "r[ü]"]), values),
    st.builds(message, values),
    st.builds(lambda number: Fact(AGENT_STARTED, {"attempt": number}, "plan", "plan"), st.integers(1, 3)),
    st.builds(lambda value: Fact(RUN_UPDATED, {"fields": {"metadata": {"it": value}}}, "run"), values),
    st.builds(Save, st.just("because")),
)


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(["note", "commit"]), facts), max_size=12))
def test_what_is_recovered_is_what_was_held_in_memory(told: list[tuple[str, Fact | Save]]) -> None:
    with opened() as service:
        journal = begun(service)
        for way, item in told:
            if way == "note" and isinstance(item, Fact):
                journal.note(item)
            else:
                journal.commit(item)
        service.recording.wait(service.recording.event(AppendEvent(W, "THE_LAST", {})))
        assert recovered(service) == journal.fields


def test_what_was_noted_last_is_there_when_the_service_is_closed(home: Home) -> None:
    with home.open(App()) as service:
        journal = begun(service)
        journal.note(message("last words"))
        assert journal.fields["messages"] == ["last words"]
    with home.open(App()) as later:
        assert recovered(later)["messages"] == ["last words"]


def test_results_are_the_same_before_and_after_a_recovery(home: Home) -> None:
    result = {"pair": (1, 2), "tagged": {"$hf": "mine"}, "bytes": b"\x00", "set": {1}, "big": "x" * 5000}
    with home.open(App()) as service:
        journal = begun(service)
        journal.commit(done("plan", result), Save("because"))
        journal.commit(done("write", result))
        assert [task["result"] for task in journal.fields["tasks"]] == [result, result]
        assert recovered(service) == journal.fields


def test_what_an_agent_still_changes_is_not_what_was_recorded(home: Home) -> None:
    with home.open(App()) as service:
        journal, result = begun(service), {"n": [1]}
        journal.commit(done("plan", result))
        result["n"].append(2)
        assert journal.fields["tasks"][0]["result"] == {"n": [1]}
        assert recovered(service) == journal.fields


def test_a_secret_is_hidden_from_the_first_moment_on() -> None:
    with opened(redact=True) as service:
        journal = begun(service)
        journal.commit(done("plan", {"token": SECRET}))
        assert SECRET not in repr(journal.fields)
        assert recovered(service)["tasks"] == journal.fields["tasks"]


def test_a_type_that_nobody_registered_fails_the_call_and_leaves_the_state_alone(home: Home) -> None:
    with home.open(App()) as service:
        journal = begun(service)
        before = journal.fields
        with pytest.raises(UnsupportedTypeError, match="result"):
            journal.commit(done("plan", object()))
        assert journal.fields is before
        journal.commit(done("plan", 1))
        assert recovered(service) == journal.fields


def test_threads_and_the_loop_record_side_by_side(home: Home) -> None:
    with home.open(App()) as service:
        journal = begun(service)

        def in_a_thread(name: str) -> None:
            for number in range(5):
                journal.note(message(f"{name} {number} noted"))
                journal.commit(message(f"{name} {number}"))

        async def on_a_loop() -> None:
            await asyncio.gather(*(journal.commit_async(message(f"loop {n}"), Save("l")) for n in range(5)))

        at_once(
            lambda: in_a_thread("a"),
            lambda: in_a_thread("b"),
            lambda: in_a_crowd(on_a_loop),
            lambda: asyncio.run(on_a_loop()),
        )
        assert len(journal.fields["messages"]) == 30
        assert recovered(service) == journal.fields
        assert journal.checkpoints == 11 and journal.warnings == []


def test_several_things_are_one_commit_also_on_a_busy_loop() -> None:
    groups: list[int] = []

    class Counting(MemoryStore):
        def commit(self, commits: Any) -> Any:
            groups.append(len(commits))
            return super().commit(commits)

    service = make_service(Counting())
    journal = begun(service)

    async def work() -> Any:
        groups.clear()
        return await journal.commit_async(message(1), message(2), Save("because"))

    made = in_a_crowd(work)
    assert made is not None and made.sequence == 2
    assert groups == [3]


def test_a_checkpoint_that_is_too_large_holds_up_nobody(home: Home) -> None:
    """The facts before it have nobody who calls for their commit."""
    with home.open(App(), limit_bytes=20_000) as service:
        told, subscriber = told_to()
        journal = begun(service, subscriber)

        async def work() -> Any:
            return await journal.commit_async(message("x" * 30_000), Save("because"))

        assert in_a_crowd(work) is None
        assert "checkpoint_failed" in [kind for kind, _ in told]
        assert [event.type for event in service.events(W)].count(MESSAGE_EVENT) == 1
        assert journal.commit(Save("again")) is None
        assert len(journal.warnings) == 2 and "a checkpoint failed" in journal.warnings[0]


def test_who_is_cancelled_while_a_commit_is_on_its_way_leaves_it_whole(home: Home) -> None:
    with home.open(App()) as service:
        journal = begun(service)

        async def work() -> None:
            writing = asyncio.ensure_future(journal.commit_async(message("a"), done("plan", 1), Save("s")))
            await asyncio.sleep(0)
            writing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await writing
            await journal.commit_async(message("b"))

        in_a_crowd(work)
        assert journal.fields["messages"] == ["a", "b"]
        assert recovered(service) == journal.fields


def test_nothing_at_all_can_be_committed() -> None:
    with opened() as service:
        journal = begun(service)
        assert journal.commit() is None

        async def work() -> Any:
            return await journal.commit_async()

        assert in_a_crowd(work) is None


@pytest.mark.parametrize("is_crowded", [False, True])
def test_a_lost_lease_is_raised_and_nothing_else_is_said(
    home: Home, is_crowded: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with home.open(App()) as service:
        lease = service.recording.take(W, "run", 3000)
        journal = begun(service)
        store = service._engine.kit.store
        store.release(lease, ())
        store.acquire(W, "another", 3000, ())

        async def work() -> None:
            journal.note(message("noted"))
            with pytest.raises(LeaseLostError):
                await journal.commit_async(message(1), message(2), Save("s"))

        with caplog.at_level(logging.WARNING):
            in_a_crowd(work) if is_crowded else asyncio.run(work())
            gc.collect()
        assert "never retrieved" not in caplog.text
        assert journal.warnings == []
        # So that closing it does not commit in vain.
        with pytest.raises(LeaseLostError):
            journal.commit(message(3))


class Broken(MemoryStore):
    """A store that can be switched off."""

    is_broken = False

    def __init__(self) -> None:
        super().__init__()
        #: Done during the next commit.
        self.meanwhile: list[Callable[[], None]] = []

    def commit(self, commits: Any) -> Any:
        while self.meanwhile:
            self.meanwhile.pop()()
        if self.is_broken:
            raise CheckpointWriteError("the disk is gone")
        return super().commit(commits)


@pytest.mark.parametrize("is_crowded", [False, True])
def test_a_storage_fault_is_told_and_stops_nothing(is_crowded: bool) -> None:
    store = Broken()
    service = make_service(store)
    told, subscriber = told_to()
    journal = begun(service, subscriber)

    async def work() -> None:
        store.is_broken = True
        journal.note(message("noted"))
        assert await journal.commit_async(message("a"), Save("s")) is None
        store.is_broken = False
        assert await journal.commit_async(message("b"), Save("s")) is not None

    in_a_crowd(work) if is_crowded else asyncio.run(work())
    kinds = [kind for kind, _ in told]
    assert kinds.count("commit_failed") == 2 and kinds.count("checkpoint_failed") == 1
    assert len([text for text in journal.warnings if text.startswith("not durable")]) == 2
    # The next checkpoint has what was not durable.
    assert recovered(service)["messages"] == ["noted", "a", "b"]
    assert journal.lost is None


def test_what_no_checkpoint_has_yet_is_lost_and_what_was_refused_was_never_said() -> None:
    store = NarrowStore()
    journal = begun(make_service(store))
    journal.note(message(LARGE))
    journal.commit(message("a"))
    lost = [journal.lost]
    assert len(journal.warnings) == 1
    store.is_full = True
    journal.commit(message("b"))
    journal.commit(message("c"))
    lost.append(journal.lost)
    store.is_full = False
    journal.commit(Save("s"))
    assert [*lost, journal.lost] == [None, Unwritten(2, "no space left", is_lost=True), None]


@pytest.mark.parametrize("is_crowded", [False, True])
def test_what_the_store_refuses_is_raised_and_was_never_said(is_crowded: bool) -> None:
    service = make_service(NarrowStore())
    journal = begun(service)

    async def work() -> None:
        journal.note(message("noted"))
        with pytest.raises(StateTooLargeError):
            await journal.commit_async(done("plan", LARGE), Save("s"))
        assert await journal.commit_async(message("after"), Save("s")) is not None

    in_a_crowd(work) if is_crowded else asyncio.run(work())
    assert journal.fields.get("tasks", []) == [] and journal.fields["messages"] == ["noted", "after"]
    assert recovered(service)["messages"] == ["noted", "after"]


@pytest.mark.parametrize("is_crowded", [False, True])
def test_what_is_refused_takes_nothing_along_that_was_said_after_it(is_crowded: bool) -> None:
    service = make_service(NarrowStore())
    told, subscriber = told_to()
    journal = begun(service, subscriber)

    async def work() -> None:
        journal.note(message("before"))
        journal.note(message(LARGE))
        journal.note(message("noted"))
        assert await journal.commit_async(done("plan", 1), Save("s")) is not None

    in_a_crowd(work) if is_crowded else asyncio.run(work())
    assert [kind for kind, _ in told].count("commit_failed") == 1
    assert journal.fields["messages"] == ["before", "noted"]
    assert [task["id"] for task in journal.fields["tasks"]] == ["plan"]
    assert recovered(service)["messages"] == ["before", "noted"]
    assert types(service).count(AGENT_COMPLETED) == 1


@pytest.mark.parametrize("on_fault", ["raise", "degrade"])
def test_what_has_to_be_durable_and_is_not_is_raised(on_fault: str) -> None:
    store = NarrowStore()
    journal = begun(make_service(store, on_fault=on_fault))
    store.is_full = True
    journal.commit(message("usual"))
    with pytest.raises(CheckpointWriteError):
        journal.commit(replace(message("vital"), care=Care.DURABLE))
    store.is_full = False


def report(title: str) -> Fact:
    return Fact(REPORT_EVENT, {"title": title, "summary": "s", "citations": []}, "plan", "plan")


def test_people_read_what_is_durable_and_nothing_else() -> None:
    store, published = Broken(), list[str]()
    journal = begun(make_service(store))
    journal.publish = lambda events: published.extend(event.data["title"] for event in events)
    journal.note(report("first"))
    assert published == []
    # Queued while the others are written: these are durable afterwards, and it is not.
    store.meanwhile = [lambda: journal.note(report("second"))]
    journal.commit(message("a"))
    assert published == ["first"]
    journal.commit(message("b"))
    assert published == ["first", "second"]
    journal.note(report("lost"))
    store.is_broken = True
    journal.commit(message("c"))
    store.is_broken = False
    journal.commit(report("third"))
    assert published == ["first", "second", "third"]


def test_nobody_is_told_of_a_failure_that_nobody_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    store = Broken()
    journal = begun(make_service(store))

    async def work() -> None:
        store.is_broken = True
        writing = asyncio.ensure_future(journal.commit_async(message("a"), message("b"), Save("s")))
        await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait({writing})
        store.is_broken = False
        # Landed after the others.
        await journal.commit_async(message("c"))

    in_a_crowd(work)
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_a_lease_that_is_lost_at_once_is_raised_too() -> None:
    class Lost(Recording):
        def checkpoint(self, *arguments: Any, **named: Any) -> Any:
            raise LeaseLostError("gone")

    with opened() as service:
        journal = Journal(Lost(service._engine), W, {"workflow_id": W})
        with pytest.raises(LeaseLostError):
            journal.commit(Save("s"))


def test_subscribers_hear_of_each_checkpoint() -> None:
    with opened() as service:
        told, subscriber = told_to()
        journal = begun(service, subscriber)
        journal.commit(Save("because"))
        kind, particulars = told[-1]
        assert (kind, particulars["reason"], particulars["durable"]) == ("checkpoint_saved", "because", True)
        assert particulars["workflow_id"] == W and particulars["checkpoint_id"] == f"{W}@2"
        assert journal.cost_seconds == particulars["seconds"] and journal.checkpoints == 2


def test_a_subscriber_that_raises_keeps_nobody_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    def raising(kind: str, data: Any) -> None:
        raise RuntimeError("no")

    with opened() as service:
        told, subscriber = told_to()
        journal = begun(service, raising, subscriber)
        journal.warn("odd")
        assert told[-1] == ("warning", {"workflow_id": W, "text": "odd"})
        assert journal.warnings == ["odd"]
        assert "a subscriber of WF-1 failed" in caplog.text


def test_a_session_is_told_in_each_checkpoint() -> None:
    with opened() as service:
        journal = Journal(service.recording, W, {"workflow_id": W}, session_id="s-7")
        made = journal.commit(Save("because"))
        assert made is not None
        assert [meta.session_id for meta in service.list_checkpoints(W)] == ["s-7"]


def test_events_without_a_meaning_for_the_state_are_recorded_all_the_same() -> None:
    with opened() as service:
        journal = begun(service)
        before = journal.fields
        journal.commit(Fact("MY_OWN", {"n": 1}, "plan"))
        assert journal.fields is before and types(service)[-1] == "MY_OWN"


def test_what_is_known_of_a_step_is_found() -> None:
    with opened() as service:
        journal = begun(service)
        assert journal.agent_state("plan") == {}
        journal.note(Fact(AGENT_STARTED, {"attempt": 1}, "plan", "plan"))
        journal.note(Fact(DECISION_EVENT, {"description": "split"}, "plan", "plan"))
        assert journal.agent_state("plan") == {"status": "running", "attempt": 1}
        assert journal.is_resumed is False
