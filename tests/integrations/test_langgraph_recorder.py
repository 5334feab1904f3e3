"""What is recorded is durable when the call returns, in order, once, and never instead of something else."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.adapters.memory import MemoryStore
from holdfast.application.recording import Recording
from holdfast.application.secrecy import keyring
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointWriteError,
    InvalidIdError,
    LeaseHeldError,
    LegalHoldError,
    StoreReadOnlyError,
)
from holdfast.integrations.langgraph import HoldfastSaver
from tests.application.services import make_service
from tests.integrations.langgraph_stores import (
    LASTING,
    channels,
    checkpoint_of,
    config_of,
    got,
    id_of,
    metadata_of,
    put,
    url_of,
)


def of_run(config: Any, **more: Any) -> Any:
    """Say what a config says that comes from a run of a graph."""
    return {"configurable": {**config["configurable"], "__pregel_task_id": "x", **more}}


@pytest.mark.parametrize("kind", LASTING)
def test_what_was_put_is_there_for_others_when_the_call_returns(kind: str, tmp_path: Path):
    url = url_of(kind, tmp_path)
    with HoldfastSaver.open(url) as saver, HoldfastSaver.open(url) as other:
        at = put(saver, config_of("t"), {"n": 1})
        assert channels(other, config_of("t")) == {"n": 1}
        saver.put_writes(at, [("n", 2)], "task")
        assert got(other, at).pending_writes == [("task", "n", 2)]


def test_a_run_that_builds_on_what_is_not_the_newest_any_more_is_told():
    with HoldfastSaver.open("memory:") as saver:
        put(saver, config_of("t"), {"n": 1}, 1)
        one, other = got(saver, config_of("t")).config, got(saver, config_of("t")).config
        put(saver, one, {"n": 2}, 2)
        with pytest.raises(CheckpointConflictError, match="went on"):
            put(saver, other, {"n": 3}, 2)
        assert channels(saver, config_of("t")) == {"n": 2}
        assert len(list(saver.list(config_of("t")))) == 2


def test_of_two_runs_that_found_no_thread_one_is_told():
    with HoldfastSaver.open("memory:") as saver:
        first, second = (of_run(config_of("t")) for _ in range(2))
        assert saver.get_tuple(first) is None and saver.get_tuple(second) is None
        at = put(saver, first, {"n": 1}, 1)
        with pytest.raises(CheckpointConflictError, match="went on"):
            put(saver, second, {"n": 2}, 1)
        after = put(saver, of_run(at), {"n": 3}, 2)
        put(saver, got(saver, config_of("t")).config, {"n": 4}, 3)
        with pytest.raises(CheckpointConflictError, match="went on"):
            put(saver, of_run(after), {"n": 5}, 3)


def test_whoever_chose_a_checkpoint_makes_a_branch():
    with HoldfastSaver.open("memory:") as saver:
        first = put(saver, config_of("t"), {"n": 1}, 1)
        second = put(saver, first, {"n": 2}, 2)
        chosen = got(saver, config_of("t", checkpoint_id=id_of(first))).config
        branch = put(saver, of_run(chosen), {"n": 3}, 2)
        assert got(saver, branch).parent_config == got(saver, second).parent_config == first


def test_a_write_repeated_after_an_unknown_outcome_is_recorded_once():
    store = MemoryStore()
    one, other = (HoldfastSaver(make_service(store)) for _ in range(2))
    checkpoint = checkpoint_of({"n": float("nan"), "m": [1, (2,)]})
    for saver in (one, other, one):
        saver.put(config_of("t"), checkpoint, metadata_of(1), {"n": 1, "m": 1})
        saver.put_writes(config_of("t", checkpoint_id=checkpoint["id"]), [("n", 1)], "task")
    assert len(list(one.list(config_of("t")))) == 1
    assert [event.type for event in one._service.events("langgraph/t")] == [
        "CHECKPOINT_CREATED",
        "LANGGRAPH_WRITES",
    ]


class FailingStore(MemoryStore):
    """A store that refuses the next commit when it is told to."""

    fails = False

    def commit(self, commits: Any) -> Any:
        if self.fails:
            return [CheckpointWriteError("the disk is gone") for _ in commits]
        return super().commit(commits)


def test_what_could_not_be_written_is_told_and_not_remembered():
    store = FailingStore()
    saver = HoldfastSaver(make_service(store, audit=False))
    first = put(saver, config_of("t"), {"n": 1}, 1)
    store.fails = True
    with pytest.raises(CheckpointWriteError, match="the disk is gone"):
        put(saver, first, {"n": 2}, 2)
    with pytest.raises(CheckpointWriteError, match="the disk is gone"):
        saver.put_writes(first, [("n", 2)], "task")
    store.fails = False
    assert channels(saver, config_of("t")) == {"n": 1} and got(saver, first).pending_writes == []
    assert channels(saver, put(saver, first, {"n": 3}, 2)) == {"n": 3}


def test_writes_of_many_tasks_at_once_are_all_recorded():
    with HoldfastSaver.open("memory:") as saver:
        at = put(saver, config_of("t"), {"n": 1})
        start = threading.Barrier(8)

        def write(number: int) -> None:
            start.wait()
            for index in range(5):
                saver.put_writes(at, [("n", index)], f"task {number}.{index}")

        workers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(got(saver, at).pending_writes or ()) == 40


def test_two_savers_that_write_by_turns_never_give_up():
    store = MemoryStore()
    savers = [HoldfastSaver(make_service(store)) for _ in range(2)]
    config = config_of("t")
    for number in range(1, 21):
        config = put(savers[number % 2], config, {"n": number}, number)
    assert all(channels(saver, config_of("t")) == {"n": 20} for saver in savers)


def test_what_another_removed_is_not_told_to_be_there_still():
    store = MemoryStore()
    one, other = (HoldfastSaver(make_service(store)) for _ in range(2))
    checkpoint, versions = checkpoint_of({"n": 1}), {"n": 1}
    at = one.put(config_of("t"), checkpoint, metadata_of(1), versions)
    one.put_writes(at, [("n", 2)], "task")
    other.delete_thread("t")
    one.put_writes(at, [("n", 2)], "task")
    assert one.put(config_of("t"), checkpoint, metadata_of(1), versions) == at
    for saver in (one, other):
        found = got(saver, at)
        assert found.checkpoint == checkpoint and found.pending_writes == [("task", "n", 2)]
    other.delete_thread("t")
    assert one.put(config_of("t"), checkpoint, metadata_of(1), versions) == at
    assert channels(other, at) == {"n": 1}


def test_what_is_told_twice_is_recorded_once():
    store = MemoryStore()
    saver = HoldfastSaver(make_service(store))
    checkpoint = checkpoint_of({"n": 1})
    for _ in range(2):
        at = saver.put(config_of("t"), checkpoint, metadata_of(1), {"n": 1})
        saver.put_writes(at, [("n", 2)], "task")
    assert len(saver._recorder.recording.events("langgraph/t", 0)) == 2


@pytest.mark.parametrize("recheck_seconds", [0, 1e9])
@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_saver_that_knew_a_thread_goes_on_after_another_destroyed_its_key(
    kind: str, recheck_seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its next look at the key may come before the put, or be far off."""
    monkeypatch.setenv("STORE_KEY", "ab" * 32)
    monkeypatch.setattr(keyring, "RECHECK_SECONDS", recheck_seconds)
    url, sealed = url_of(kind, tmp_path), {"encrypt": True, "encryption_key": "env:STORE_KEY"}
    with HoldfastSaver.open(url, **sealed) as one, HoldfastSaver.open(url, **sealed) as other:
        for number in (1, 2, 3):
            first = put(one, config_of("t"), {"n": 1, "k": number})
            assert channels(other, first) == {"n": 1, "k": number}
            other.delete_thread("t")
            later = checkpoint_of({"n": 2, "k": number}, channel_versions={"n": 2, "k": 1})
            one.put(first, later, metadata_of(2), {"n": 2})
            for saver in (one, other):
                assert [item.checkpoint["channel_values"] for item in saver.list(None)] == [
                    {"n": 2, "k": number}
                ]
            other.delete_thread("t")
            one.put_writes(first, [("n", 3)], "task")
            assert one.get_tuple(first) is None
            one.delete_thread("t")


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_so_does_one_that_only_read_it(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("STORE_KEY", "ab" * 32)
    monkeypatch.setattr(keyring, "RECHECK_SECONDS", 0)
    url, sealed = url_of(kind, tmp_path), {"encrypt": True, "encryption_key": "env:STORE_KEY"}
    with HoldfastSaver.open(url, **sealed) as one, HoldfastSaver.open(url, **sealed) as other:
        first = put(one, config_of("t"), {"n": 1})
        assert channels(other, first) == {"n": 1}
        one.delete_thread("t")
        put(other, first, {"n": 2}, 2)
        assert channels(one, config_of("t")) == {"n": 2}


def test_a_thread_that_another_process_holds_is_not_written():
    store = MemoryStore()
    owner, other = make_service(store), make_service(store)
    put(HoldfastSaver(owner), config_of("t"), {"n": 1}, 1)
    owner.acquire_lease("langgraph/t", "owner")
    with pytest.raises(LeaseHeldError):
        put(HoldfastSaver(other), config_of("t"), {"n": 2}, 2)
    assert channels(HoldfastSaver(other), config_of("t")) == {"n": 1}


def test_a_store_that_is_open_for_reading_is_read_and_not_written(tmp_path: Path):
    url = url_of("file", tmp_path)
    with HoldfastSaver.open(url) as saver:
        put(saver, config_of("t"), {"n": 1}, 1)
    with holdfast.open(url, read_only=True) as service:
        saver = HoldfastSaver(service)
        assert channels(saver, config_of("t")) == {"n": 1}
        with pytest.raises(StoreReadOnlyError):
            put(saver, config_of("t"), {"n": 2}, 2)


def test_a_thread_under_legal_hold_is_not_removed():
    with holdfast.open("memory:") as service:
        saver = HoldfastSaver(service)
        first = put(saver, config_of("t"), {"n": 1}, 1)
        put(saver, first, {"n": 2}, 2)
        service.holds.place(workflow_id="langgraph/t", reason="a case")
        for remove in (lambda: saver.prune(["t"]), lambda: saver.delete_thread("t")):
            with pytest.raises(LegalHoldError):
                remove()
        assert len(list(saver.list(config_of("t")))) == 2


HOSTILE = [
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "C:\\con",
    "a" * 5_000,
    "a" * 4_999 + "b",
    "\x00",
    "a\x00b",
    "\ud800",
    " a ",
    "a",
    "A",
    "'; drop table checkpoints; --",
    "%s%n",
    "a@1",
    "a@latest",
    "a~b",
    "a%7Eb",
    "\u202egnp",
    "\u2028",
    "é",
    "e\u0301",
    "langgraph/a",
    ".",
    "~",
    "\n",
]


def test_a_thread_without_a_name_is_refused_and_told_what_to_do():
    with HoldfastSaver.open("memory:") as saver:
        empty: list[Any] = [config_of(""), {"configurable": {}}]
        for config in empty:
            with pytest.raises(InvalidIdError, match="thread_id"):
                saver.get_tuple(config)


@pytest.mark.parametrize("kind", LASTING)
def test_hostile_names_are_threads_like_any_other(kind: str, tmp_path):
    url = url_of(kind, tmp_path)
    with HoldfastSaver.open(url) as saver:
        for number, name in enumerate(HOSTILE):
            put(saver, config_of(name), {"n": number})
    with HoldfastSaver.open(url) as saver:
        assert [channels(saver, config_of(name)) for name in HOSTILE] == [
            {"n": number} for number in range(len(HOSTILE))
        ]
        listed = {found.config["configurable"]["thread_id"] for found in saver.list(None)}
        assert listed == set(HOSTILE)
        saver.delete_thread(HOSTILE[4])
        assert saver.get_tuple(config_of(HOSTILE[4])) is None
        assert channels(saver, config_of(HOSTILE[5])) == {"n": 5}
    assert sorted(path.name for path in tmp_path.parent.iterdir() if path.name == "etc") == []


def test_a_number_is_as_good_a_name_as_its_text():
    with HoldfastSaver.open("memory:") as saver:
        put(saver, config_of(7), {"n": 1})
        assert channels(saver, config_of("7")) == {"n": 1}


def test_an_image_in_five_channels_is_kept_once_in_states_and_once_as_written(tmp_path: Path):
    image = "".join(chr(65 + (number * number) % 57) for number in range(300_000))
    names = [f"view {number}" for number in range(5)]
    with HoldfastSaver.open(str(tmp_path / "store"), warn_bytes=10**8) as saver:
        at = put(saver, config_of("t"), {"n": 1})
        saver.put_writes(at, [(name, image) for name in names], "task")
        newest = put(saver, at, dict.fromkeys(names, image))
    with HoldfastSaver.open(str(tmp_path / "store"), warn_bytes=10**8) as saver:
        assert got(saver, at).pending_writes == [("task", name, image) for name in names]
        assert channels(saver, newest) == dict.fromkeys(names, image)
    files = [
        path for path in (tmp_path / "store").rglob("*") if path.is_file() and "journal" not in path.parts
    ]
    assert sum(path.stat().st_size for path in files) < 2.2 * len(image)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"configurable": None},
        {"configurable": {"checkpoint_ns": ""}},
        {"configurable": {"thread_id": None}},
    ],
)
def test_a_config_without_a_thread_is_told(config: Any):
    with HoldfastSaver.open("memory:") as saver, pytest.raises(InvalidIdError, match="no thread is named"):
        saver.get_tuple(config)


def test_what_a_put_follows_may_be_removed_by_others_while_it_is_prepared(monkeypatch):
    store = MemoryStore()
    saver, other = HoldfastSaver(make_service(store)), HoldfastSaver(make_service(store))
    first = put(saver, config_of("t"), {"n": 1}, 1)
    put(saver, first, {"n": 2}, 2)
    checkpoint, left = Recording.checkpoint, [1]

    def overtaken(*args: Any, **named: Any) -> Any:
        if left:
            left.pop()
            other.prune(["t"])
        return checkpoint(*args, **named)

    monkeypatch.setattr(Recording, "checkpoint", overtaken)
    branch = put(saver, first, {"n": 3}, 2)
    assert got(saver, branch).checkpoint["channel_values"] == {"n": 3} and not left
