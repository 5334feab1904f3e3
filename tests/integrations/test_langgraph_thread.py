"""A thread is what its journal tells: of a long one the end is read, and more only when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base.id import uuid6

from holdfast.adapters.memory import MemoryStore
from holdfast.application.recording import Recording
from holdfast.domain.event import Event
from holdfast.integrations.langgraph import HoldfastSaver
from tests.application.services import make_service
from tests.integrations.langgraph_graphs import counter
from tests.integrations.langgraph_stores import LASTING, channels, config_of, got, id_of, put, url_of

LONG = 400


class Read:
    """Counts the events that are read of journals."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        read = Recording.events

        def counting(recording: Recording, workflow_id: str, after: int) -> list[Event]:
            found = read(recording, workflow_id, after)
            self.count += len(found)
            return found

        monkeypatch.setattr(Recording, "events", counting)


def two_savers() -> tuple[HoldfastSaver, HoldfastSaver]:
    """Two that share a store, and nothing else."""
    store = MemoryStore()
    return HoldfastSaver(make_service(store)), HoldfastSaver(make_service(store))


def chain(saver: HoldfastSaver, count: int, *, ns: str = "") -> list[Any]:
    configs, config = [], config_of("t", ns)
    for number in range(1, count + 1):
        config = put(saver, config, {"n": number}, number)
        configs.append(config)
    return configs


def test_the_newest_of_a_long_thread_is_found_at_its_end(monkeypatch):
    writer, reader = two_savers()
    configs = chain(writer, LONG)
    read = Read(monkeypatch)
    assert channels(reader, config_of("t")) == {"n": LONG}
    assert 0 < read.count < LONG
    assert [item.metadata["step"] for item in reader.list(config_of("t"), limit=3)] == [
        LONG,
        LONG - 1,
        LONG - 2,
    ]
    assert read.count < LONG
    assert channels(reader, configs[0]) == {"n": 1}
    assert len(list(reader.list(config_of("t")))) == LONG


def test_what_is_read_once_is_not_read_again(monkeypatch):
    writer, reader = two_savers()
    chain(writer, 20)
    read = Read(monkeypatch)
    for _ in range(3):
        assert channels(reader, config_of("t")) == {"n": 20}
    assert read.count == 20
    put(writer, got(reader, config_of("t")).config, {"n": 21}, 21)
    assert channels(reader, config_of("t")) == {"n": 21} and read.count == 21


def test_of_a_thread_that_others_recorded_in_only_that_is_read(monkeypatch):
    service = make_service(MemoryStore())
    writer, other = HoldfastSaver(service), HoldfastSaver(service)
    configs = chain(writer, LONG)
    for saver in (writer, other):
        assert saver.get_tuple(config_of("t", "child:1")) is None
    read = Read(monkeypatch)
    for number in range(1, 4):
        other.put_writes(configs[0], [("late", number)], f"task{number}")
        others = read.count
        config = put(writer, configs[-1], {"n": LONG + number}, LONG + number)
        writer.put_writes(config, [("n", number)], "task")
        # Nor is a namespace that the thread does not have looked for in all of it again.
        assert writer.get_tuple(config_of("t", "child:1")) is None
        assert read.count - others <= 3
        assert got(writer, config).pending_writes == [("task", "n", number)]
        assert list(got(writer, configs[0]).pending_writes or ())[-1] == (f"task{number}", "late", number)
        configs.append(config)


def test_what_was_not_kept_is_forgotten_also_where_others_came_in_between(monkeypatch):
    saver = HoldfastSaver(make_service(MemoryStore()))
    first = chain(saver, 1)[0]
    saver.put_writes(first, [("n", 1)], "one")
    thread = saver._recorder.thread("t")
    with thread:
        on_the_way = thread.queued
    # Something of others, of which this process does not know.
    saver._service.append_event("langgraph/t", "OTHERS", {})
    assert on_the_way is not None
    is_kept = Recording.is_kept
    monkeypatch.setattr(
        Recording, "is_kept", lambda self, ticket: ticket is not on_the_way and is_kept(self, ticket)
    )
    saver.put_writes(first, [("n", 2)], "two")
    read = Read(monkeypatch)
    assert [write[0] for write in got(saver, first).pending_writes or ()] == ["one", "two"]
    assert read.count == 4


def test_a_namespace_that_was_not_touched_for_long_is_found():
    writer, reader = two_savers()
    inner = chain(writer, 2, ns="child:1")
    chain(writer, LONG)
    assert id_of(got(reader, config_of("t", "child:1")).config) == id_of(inner[-1])
    assert reader.get_tuple(config_of("t", "child:2")) is None


def test_writes_on_an_old_checkpoint_are_found_with_it():
    writer, reader = two_savers()
    first = chain(writer, 1)[0]
    config = first
    for number in range(2, LONG):
        config = put(writer, config, {"n": number}, number)
    writer.put_writes(first, [("late", 1)], "task")
    assert got(reader, config_of("t")).pending_writes == []
    assert got(reader, first).pending_writes == [("task", "late", 1)]
    assert got(writer, first).pending_writes == [("task", "late", 1)]


@pytest.mark.parametrize("since", [0, 1, 100])
def test_writes_that_were_told_long_before_their_checkpoint_are_found_with_it(since: int):
    writer, reader = two_savers()
    late = str(uuid6(clock_seq=-2))
    for task in ("one", "two"):
        writer.put_writes(config_of("t", checkpoint_id=late), [("early", task)], task)
        chain(writer, LONG, ns=f"child:{task}")
    config = put(writer, config_of("t"), {"n": 1}, 1, id=late)
    for number in range(2, 2 + since):
        config = put(writer, config, {"n": number}, number)
    expected = [("one", "early", "one"), ("two", "early", "two")]
    assert channels(reader, config_of("t")) == {"n": 1 + since}
    assert got(reader, config_of("t", checkpoint_id=late)).pending_writes == expected
    assert got(writer, config_of("t", checkpoint_id=late)).pending_writes == expected
    assert len(list(reader.list(config_of("t")))) == 1 + since


@pytest.mark.parametrize("kind", LASTING)
def test_two_processes_see_what_the_other_does(kind: str, tmp_path: Path):
    url = url_of(kind, tmp_path)
    with HoldfastSaver.open(url) as one, HoldfastSaver.open(url) as other:
        at = put(one, config_of("t"), {"n": 1}, 1)
        other.put_writes(at, [("n", 2)], "task")
        assert got(one, at).pending_writes == [("task", "n", 2)]
        at = put(other, at, {"n": 2}, 2)
        assert channels(one, config_of("t")) == {"n": 2}
        at = put(one, at, {"n": 3}, 3)
        assert channels(other, at) == {"n": 3}
        other.prune(["t"])
        assert [item.metadata["step"] for item in one.list(config_of("t"))] == [3]
        one.delete_thread("t")
        assert other.get_tuple(config_of("t")) is None
        put(other, config_of("t"), {"n": 9}, 1)
        assert channels(one, config_of("t")) == {"n": 9}


def test_after_the_newest_is_removed_the_one_before_is_the_newest():
    writer, reader = two_savers()
    first = put(writer, config_of("t"), {"n": 1}, 1, metadata={"run_id": "a"})
    put(writer, first, {"n": 2}, 2, metadata={"run_id": "b"})
    assert channels(reader, config_of("t")) == {"n": 2}
    writer.delete_for_runs(["b"])
    for saver in (writer, reader):
        assert channels(saver, config_of("t")) == {"n": 1}
    after = put(reader, first, {"n": 3}, 3)
    assert channels(writer, after) == {"n": 3} and got(writer, after).parent_config == first


def test_a_thread_that_was_forgotten_is_read_again(monkeypatch):
    monkeypatch.setattr("holdfast.integrations.langgraph_recorder._REMEMBERED", 10)
    with HoldfastSaver.open("memory:") as saver:
        for number in range(30):
            at = put(saver, config_of(str(number)), {"n": number})
            saver.put_writes(at, [("n", number)], "task")
        for number in range(30):
            found = got(saver, config_of(str(number)))
            assert found.checkpoint["channel_values"] == {"n": number}
            assert found.pending_writes == [("task", "n", number)]


def test_a_clock_that_was_put_back_does_not_stop_a_thread():
    writer, reader = two_savers()
    put(writer, config_of("t"), {"items": ["before"]}, 1, id="ffffffff-0000-6000-8000-000000000000")
    for saver in (writer, reader):
        graph = counter(2).compile(checkpointer=saver)
        for number in range(2):
            last = graph.invoke({"items": [number]}, config_of("t"))
            assert last["items"][-3:] == [number, "step1", "step2"]
            assert graph.get_state(config_of("t")).values == last
    assert last["items"].count("step1") == 4
    writer.prune(["t"])
    assert graph.get_state(config_of("t")).values == last


def test_reading_further_back_forgets_nothing_that_is_on_its_way(monkeypatch):
    writer, saver = two_savers()
    configs = chain(writer, LONG)
    assert channels(saver, config_of("t")) == {"n": LONG}
    # A run puts a checkpoint, and has not come to wait for it.
    monkeypatch.setattr(Recording, "wait", lambda *_: None)
    queued = put(saver, configs[-1], {"n": LONG + 1}, LONG + 1)
    monkeypatch.undo()
    thread = saver._recorder.thread("t")
    with thread:
        # Another asks for one of the first meanwhile.
        assert thread.any_put("", id_of(configs[0])) is not None
        newest = thread.newest("")
    assert newest is not None and newest.id == id_of(queued)
    assert channels(saver, config_of("t")) == {"n": LONG + 1}


@pytest.mark.parametrize("by", ["prune", "retention"])
def test_writes_that_were_told_before_their_checkpoint_stay_with_it_when_what_is_older_goes(by: str):
    writer, reader = two_savers()
    late = str(uuid6(clock_seq=-2))
    first = chain(writer, 3)[-1]
    writer.put_writes(config_of("t", checkpoint_id=late), [("early", 1)], "task")
    put(writer, first, {"n": 4}, 4, id=late)
    if by == "prune":
        writer.prune(["t"])
    else:
        put(writer, config_of("t", checkpoint_id=late), {"n": 5}, 5)
        writer._service.prune_checkpoints("langgraph/t", retain_count=2, retain_days=0)
    assert got(reader, config_of("t", checkpoint_id=late)).pending_writes == [("task", "early", 1)]
    assert got(writer, config_of("t", checkpoint_id=late)).pending_writes == [("task", "early", 1)]
