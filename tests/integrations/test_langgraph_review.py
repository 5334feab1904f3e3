"""What several savers, erasure, recovery, redaction and forks do to each other."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import holdfast
from holdfast.adapters.memory import MemoryStore
from holdfast.application.recording import Recording
from holdfast.domain.errors import CheckpointConflictError, CheckpointWriteError, RedactedStateWarning
from holdfast.integrations import langgraph_thread
from holdfast.integrations.langgraph import NEWEST, HoldfastSaver
from holdfast.integrations.langgraph_import import bring
from holdfast.testing import FailingStore
from tests.application.services import make_service
from tests.integrations.langgraph_stores import (
    channels,
    checkpoint_of,
    config_of,
    got,
    id_of,
    metadata_of,
    put,
)

OPENAI_KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


def two_savers() -> tuple[HoldfastSaver, HoldfastSaver]:
    """Two that share a store, and nothing else."""
    store = MemoryStore()
    return HoldfastSaver(make_service(store)), HoldfastSaver(make_service(store))


def of_run(config: Any) -> Any:
    """Name the same place as a run does that was answered the newest checkpoint."""
    return {"configurable": {**config["configurable"], NEWEST: True}}


# -- two that do not know of each other ------------------------------------------------------------------


def test_of_two_runs_that_begin_a_thread_one_is_refused():
    one, other = two_savers()
    assert one.get_tuple(config_of("t")) is other.get_tuple(config_of("t")) is None
    put(one, of_run(config_of("t")), {"n": 1})
    with pytest.raises(CheckpointConflictError):
        put(other, of_run(config_of("t")), {"n": 2})


def test_of_two_runs_that_go_on_after_the_newest_was_removed_one_is_refused():
    one, other = two_savers()
    first = put(one, config_of("t"), {"n": 1}, metadata={"run_id": "kept"})
    put(one, first, {"n": 2}, 2, metadata={"run_id": "gone"})
    one.delete_for_runs(["gone"])
    assert channels(one, config_of("t")) == channels(other, config_of("t")) == {"n": 1}
    put(one, of_run(first), {"n": 3}, 3)
    with pytest.raises(CheckpointConflictError):
        put(other, of_run(first), {"n": 4}, 4)


def test_what_stays_as_it_was_is_said_anew_if_others_erased_it(tmp_path: Path):
    url = f"file:{tmp_path}/store"
    with HoldfastSaver.open(url, cache_bytes=1) as saver:
        first = put(saver, config_of("t"), {"n": 1, "k": "kept"})
        put(saver, config_of("other"), {"n": 1})
        with holdfast.open(url) as service:
            service.erasure.workflow("langgraph/t", reason="asked for")
        later = checkpoint_of({"n": 2, "k": "kept"}, channel_versions={"n": 2, "k": 1})
        saver.put(first, later, metadata_of(2), {"n": 2})
        assert channels(saver, config_of("t")) == {"n": 2, "k": "kept"}


def test_a_state_that_never_came_to_be_is_not_answered(monkeypatch: pytest.MonkeyPatch):
    one, other = two_savers()
    root = put(one, config_of("t"), {"n": 1})
    recording, seen = one._recorder.recording, list[Any]()
    wait = recording.wait

    def late(ticket: Any) -> Any:
        if not seen:
            put(other, config_of("t", "b"), {"m": "theirs"})
            seen.append(channels(one, config_of("t", "b")))
        return wait(ticket)

    monkeypatch.setattr(recording, "wait", late)
    put(one, root, {"n": 2}, 2)
    assert seen == [{"m": "theirs"}]
    assert channels(other, config_of("t")) == {"n": 2}
    assert channels(one, config_of("t", "b")) == {"m": "theirs"}


# -- erasing ---------------------------------------------------------------------------------------------


def test_a_thread_of_writes_alone_is_erased():
    saver = HoldfastSaver(make_service(MemoryStore()))
    saver.put_writes(config_of("t", "", "nothing-was-put"), [("x", "private")], "task")
    saver.delete_thread("t")
    told = saver._recorder.recording.events("langgraph/t", 0)
    assert [event.type for event in told] == ["CHECKPOINTS_PRUNED"]


def test_an_encrypted_thread_that_was_deleted_can_begin_anew(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("STORE_KEY", "ab" * 32)
    url, sealed = f"file:{tmp_path}/store", {"encrypt": True, "encryption_key": "env:STORE_KEY"}
    with HoldfastSaver.open(url, **sealed) as saver:
        saver.put_writes(put(saver, config_of("t"), {"n": 1}), [("n", 2)], "task")
        saver.delete_thread("t")
        assert saver.get_tuple(config_of("t")) is None
        assert list(saver.list(None)) == []
        put(saver, config_of("t"), {"n": 3})
    with HoldfastSaver.open(url, **sealed) as saver:
        assert [item.checkpoint["channel_values"] for item in saver.list(None)] == [{"n": 3}]


def test_a_saver_goes_on_after_another_destroyed_the_key(tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("STORE_KEY", "ab" * 32)
    url, sealed = f"file:{tmp_path}/store", {"encrypt": True, "encryption_key": "env:STORE_KEY"}
    with HoldfastSaver.open(url, **sealed) as one, HoldfastSaver.open(url, **sealed) as other:
        first = put(one, config_of("t"), {"n": 1, "k": "kept"})
        other.delete_thread("t")
        later = checkpoint_of({"n": 2, "k": "kept"}, channel_versions={"n": 2, "k": 1})
        one.put(first, later, metadata_of(2), {"n": 2})
        assert [item.checkpoint["channel_values"] for item in one.list(config_of("t"))] == [
            {"n": 2, "k": "kept"}
        ]


# -- faults ----------------------------------------------------------------------------------------------


def test_what_waits_for_a_store_that_fails_is_the_newest():
    store = FailingStore(MemoryStore())
    service = make_service(store, on_fault="degrade")
    saver = HoldfastSaver(service)
    config = put(saver, config_of("t"), {"n": 1})
    store.fail("commit", CheckpointWriteError("the disk is gone"), times=100)
    config = put(saver, of_run(config), {"n": 2}, 2)
    assert channels(saver, config_of("t")) == {"n": 2}
    put(saver, of_run(config), {"n": 3}, 3)
    assert channels(saver, config_of("t")) == {"n": 3}
    store._failures.clear()
    service.close()


def test_writes_that_are_put_again_are_waited_for_like_the_first(monkeypatch: pytest.MonkeyPatch):
    saver = HoldfastSaver(make_service(MemoryStore()))
    config = put(saver, config_of("t"), {"n": 1})
    waited: list[Any] = []
    wait = Recording.wait

    def impatient(recording: Recording, ticket: Any) -> Any:
        waited.append(ticket)
        if len(waited) == 1:
            raise TimeoutError("the caller gave up")
        return wait(recording, ticket)

    monkeypatch.setattr(Recording, "wait", impatient)
    with pytest.raises(TimeoutError):
        saver.put_writes(config, [("n", 2)], "task")
    saver.put_writes(config, [("n", 2)], "task")
    assert len(waited) == 2 and waited[0] is waited[1] and waited[0].done


def test_looking_further_back_forgets_nothing_that_waits_for_a_store(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(langgraph_thread, "_FIRST_EVENTS", 4)
    store = FailingStore(MemoryStore())
    service = make_service(store, on_fault="degrade")
    before, config = HoldfastSaver(service), config_of("t")
    for number in range(1, 11):
        config = put(before, of_run(config), {"n": number}, number)
    saver = HoldfastSaver(service)
    assert channels(saver, config_of("t")) == {"n": 10}
    store.fail("commit", CheckpointWriteError("the disk is gone"), times=100)
    config = put(saver, of_run(config), {"n": 11}, 11)
    saver.put_writes(config, [("n", 12)], "task")
    listed = [one.checkpoint["channel_values"]["n"] for one in saver.list(config_of("t"))]
    assert listed == list(range(11, 0, -1))
    newest = saver.get_tuple(config_of("t"))
    assert newest is not None and newest.pending_writes == [("task", "n", 12)]
    assert newest.checkpoint["channel_values"] == {"n": 11}
    put(saver, of_run(config), {"n": 12}, 12)
    store._failures.clear()
    service.flush()
    assert channels(saver, config_of("t")) == {"n": 12}
    service.close()


def test_what_waits_for_a_store_stays_the_newest_when_that_fails_again():
    """The ladder tells of each step in the journal of the thread, which nobody can read as yet."""
    store = FailingStore(MemoryStore())
    service = make_service(store, on_fault="degrade")
    saver = HoldfastSaver(service)
    config = put(saver, config_of("t"), {"n": 1})
    store.fail("commit", CheckpointWriteError("the disk is gone"), times=100)
    config = put(saver, of_run(config), {"n": 2}, 2)
    while service.recording.head("langgraph/t")[1] < 3:
        # It tells in a thread of its own.
        threading.Event().wait(0.01)
    assert channels(saver, config_of("t")) == {"n": 2}
    for number in (3, 4):
        config = put(saver, of_run(config), {"n": number}, number)
        assert channels(saver, config_of("t")) == {"n": number}
    store._failures.clear()
    service.flush()
    assert channels(saver, config_of("t")) == {"n": 4}
    put(saver, of_run(config), {"n": 5}, 5)
    assert channels(saver, config_of("t")) == {"n": 5}
    listed = [one.checkpoint["channel_values"] for one in saver.list(config_of("t"))]
    assert listed == [{"n": number} for number in (5, 4, 3, 2, 1)]
    service.close()


def test_a_recovered_thread_goes_on_from_where_recovery_did(tmp_path: Path):
    url = f"file:{tmp_path}/store"
    with HoldfastSaver.open(url) as saver:
        config = config_of("t")
        for number in (1, 2, 3):
            config = put(saver, config, {"n": f"mark-{number}"}, number)
    for path in (tmp_path / "store" / "checkpoints").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes().replace(b"mark-3", b"evil-3"))
    with holdfast.open(url) as service:
        service.recover_workflow("langgraph/t")
    with HoldfastSaver.open(url) as saver:
        found = got(saver, config_of("t"))
        assert found.checkpoint["channel_values"] == {"n": "mark-2"}
        put(saver, found.config, {"n": "mark-4"}, 4)
        assert channels(saver, config_of("t")) == {"n": "mark-4"}


def _ask_in_child(saver: HoldfastSaver) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if channels(saver, config_of("t")) == {"n": 1} else 1)
    return os.waitpid(child, 0)[1]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_wait_for_a_thread_of_its_parent(tmp_path: Path):
    with HoldfastSaver.open(f"file:{tmp_path}/store") as saver:
        put(saver, config_of("t"), {"n": 1})
        taken, done = threading.Event(), threading.Event()

        def hold() -> None:
            with saver._recorder.thread("t"):
                taken.set()
                done.wait()

        holder = threading.Thread(target=hold)
        holder.start()
        taken.wait()
        status = _ask_in_child(saver)
        done.set()
        holder.join()
        assert status == 0


# -- secrets ---------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::holdfast.domain.errors.RedactedStateWarning")
def test_versions_and_kinds_of_a_channel_named_as_secrets_are_survive(tmp_path: Path):
    url, version = f"file:{tmp_path}/store", f"{2:032}.0.243798848838515"
    with HoldfastSaver.open(url) as saver:
        versions = {"password": version}
        config = put(saver, config_of("t"), {"password": "hunter2hunter2"}, channel_versions=versions)
        saver.put_writes(config, [("password", "hunter2hunter2")], "task")
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hunter2hunter2" not in stored
    with HoldfastSaver.open(url) as saver:
        found = got(saver, config_of("t"))
        assert found.checkpoint["channel_versions"] == {"password": version}
        assert str(saver.get_next_version(version, None)) > version


def test_a_secret_inside_of_an_object_of_langgraph_is_hidden_and_the_rest_stays(tmp_path: Path):
    url = f"file:{tmp_path}/store"
    with HoldfastSaver.open(url) as saver:
        put(saver, config_of("t"), {"next": Command(update={"a": f"key {OPENAI_KEY} ok"}, goto="b")})
    with HoldfastSaver.open(url) as saver, pytest.warns(RedactedStateWarning):
        found = channels(saver, config_of("t"))["next"]
    assert found.goto == "b"
    assert found.update["a"].startswith("key [REDACTED:") and found.update["a"].endswith("] ok")


class Asked(TypedDict):
    key: str
    answer: str


def test_a_run_that_lives_has_its_secrets_in_writes_too(tmp_path: Path):
    graph = StateGraph(Asked)
    graph.add_node("find", lambda asked: {"key": OPENAI_KEY})
    graph.add_node("ask", lambda asked: {"answer": interrupt("?")})
    graph.add_edge(START, "find")
    graph.add_edge(START, "ask")
    with HoldfastSaver.open(f"file:{tmp_path}/store") as saver:
        app: Any = graph.compile(checkpointer=saver)
        app.invoke({"answer": ""}, config_of("t"), durability="sync")
        ended = app.invoke(Command(resume="yes"), config_of("t"), durability="sync")
    assert ended == {"key": OPENAI_KEY, "answer": "yes"}


# -- what a drop-in takes --------------------------------------------------------------------------------


class Plain(TypedDict):
    n: int


def test_the_error_of_a_node_is_told(tmp_path: Path):
    def fail(plain: Plain) -> Any:
        raise LookupError("nothing there")

    graph = StateGraph(Plain)
    graph.add_node("fail", fail)
    graph.add_edge(START, "fail")
    with HoldfastSaver.open(f"file:{tmp_path}/store") as saver:
        app: Any = graph.compile(checkpointer=saver)
        with pytest.raises(LookupError):
            app.invoke({"n": 1}, config_of("t"), durability="sync")
        [task] = app.get_state(config_of("t")).tasks
        assert task.error == "LookupError('nothing there')"


def test_the_text_of_a_message_is_a_text():
    saver = HoldfastSaver(make_service(MemoryStore()))
    put(saver, config_of("t"), {"said": AIMessage("hello").text, "all": [AIMessage("hello").text]})
    assert channels(saver, config_of("t")) == {"said": "hello", "all": ["hello"]}


def test_metadata_that_were_answered_may_be_changed():
    saver = HoldfastSaver(make_service(MemoryStore()))
    put(saver, config_of("t"), {"n": 1}, metadata={"deep": {"a": {"b": [1]}}})
    told: Any = got(saver, config_of("t")).metadata
    told["deep"]["a"]["b"].append("spoilt")
    again: Any = got(saver, config_of("t")).metadata
    assert again["deep"] == {"a": {"b": [1]}}


def test_an_event_loop_reads_no_journal(monkeypatch: pytest.MonkeyPatch):
    saver, readers = HoldfastSaver(make_service(MemoryStore())), set()
    put(saver, config_of("t"), {"n": 1})
    ask = Recording.head

    def head(recording: Recording, workflow_id: str) -> tuple[int, int]:
        readers.add(threading.get_ident())
        return ask(recording, workflow_id)

    monkeypatch.setattr(Recording, "head", head)

    async def listed() -> int:
        return len([item async for item in saver.alist(config_of("t"))])

    assert asyncio.run(listed()) == 1
    assert readers and threading.get_ident() not in readers


def test_an_import_is_in_the_order_in_which_it_came_about():
    source, target = InMemorySaver(), HoldfastSaver(make_service(MemoryStore()))
    for number in range(3):
        for ns in ("", f"sub:{number}"):
            checkpoint = checkpoint_of({"n": number})
            source.put(config_of("t", ns), checkpoint, metadata_of(number), {"n": 1})
    bring(source, target)
    listed = [item.config["configurable"]["checkpoint_id"] for item in target.list(None)]
    known = target._recorder.thread("t").all_puts()
    assert [put.id for put in known] == list(reversed(listed))
    assert id_of(got(target, config_of("t")).config) == known[-2].id


# -- answers ---------------------------------------------------------------------------------------------


class Desk(TypedDict, total=False):
    """What is asked for, and a note that comes with an answer."""

    note: str
    answers: str


class Dying(HoldfastSaver):
    """Records nothing more once its process is taken for dead."""

    answered = threading.Event()
    is_dead = False

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        if not self.is_dead:
            super().put_writes(config, writes, task_id, task_path)
            if ("__resume__", "no") in writes:
                self.answered.set()


def test_a_killed_run_goes_on_with_the_last_answer_and_not_with_the_one_before_it():
    service = make_service(MemoryStore())
    dying = Dying(service)

    def ask(state: Desk) -> Any:
        answers = interrupt("who are you?"), interrupt("may it go out?")
        if not dying.is_dead:
            assert dying.answered.wait(60)
            dying.is_dead = True
            raise ConnectionError("killed")
        return {"answers": ": ".join(answers)}

    graph = StateGraph(Desk)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    first = graph.compile(checkpointer=dying)
    t: Any = config_of("t")
    first.invoke({"note": ""}, t, durability="sync")
    first.invoke(Command(resume="Ada", update={"note": "from the desk"}), t, durability="sync")
    with pytest.raises(ConnectionError):
        first.invoke(Command(resume="no"), t, durability="sync")
    again = graph.compile(checkpointer=HoldfastSaver(service))
    assert again.invoke(None, t) == {"note": "from the desk", "answers": "Ada: no"}
