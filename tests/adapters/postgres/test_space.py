"""Room that removals leave is told, and comes back."""

from __future__ import annotations

import os
import threading

import pytest

from holdfast.adapters.postgres import space
from holdfast.conformance.history import History, make_keyframe
from holdfast.domain.errors import CheckpointError, StoreClosedError
from holdfast.domain.record import Removal

KEYFRAME_BYTES = 200_000


def fill(store, count):
    """Checkpoints with keyframes that no compressor shrinks."""
    history = History(store)
    for number in range(1, count + 1):
        history.commit(group=number)
        store.put_keyframe("W", make_keyframe(number, os.urandom(KEYFRAME_BYTES)))
    return history


def removal(count):
    numbers = tuple(range(1, count + 1))
    return Removal(sequences=numbers, groups=numbers)


def test_sizes_are_told_by_table_with_indexes_and_large_values(store):
    fill(store, 3)
    stats = store.stats()
    assert stats["checkpoints"] == 3 and stats["keyframes"] == 3
    assert stats["table_bytes"]["keyframes"] >= 3 * KEYFRAME_BYTES
    assert set(stats["table_bytes"]) == set(stats["index_bytes"]) == set(space.TABLES)
    assert stats["index_bytes"]["checkpoints"] > 0
    assert stats["disk_bytes"] >= sum(stats["table_bytes"].values())


def test_what_was_removed_is_reclaimable_until_it_is_vacuumed(store):
    fill(store, 10)
    before = store.stats()
    freed_bytes = store.remove("W", removal(10))
    assert freed_bytes >= 10 * KEYFRAME_BYTES
    dead_bytes = 0
    while dead_bytes < freed_bytes / 2:
        # The server counts a little later than it commits.
        dead_bytes = store.stats()["reclaimable_bytes"]
    store.settle()
    after = store.stats()
    assert after["table_bytes"]["keyframes"] < before["table_bytes"]["keyframes"] / 4
    assert after["reclaimable_bytes"] < dead_bytes / 4


def test_a_small_removal_is_left_to_the_server(store, monkeypatch):
    vacuums: list[object] = []
    monkeypatch.setattr(space, "vacuum", vacuums.append)
    fill(store, 1)
    store.remove("W", removal(1))
    store.settle()
    assert vacuums == []
    monkeypatch.setattr(space, "WORTH_VACUUMING_BYTES", 1000)
    store.settle()
    store.settle()
    assert len(vacuums) == 1


def test_a_vacuum_that_the_server_refuses_is_told_in_our_words_and_stops_no_closing(store, monkeypatch):
    monkeypatch.setattr(space, "TABLES", ("nowhere",))
    monkeypatch.setattr(space, "WORTH_VACUUMING_BYTES", 1)
    fill(store, 2)
    store.remove("W", removal(1))
    with pytest.raises(CheckpointError, match="nowhere"):
        store.settle()
    store.remove("W", removal(2))
    store.close()
    with pytest.raises(StoreClosedError):
        store.head("W")


def test_whatever_interrupts_a_closing_it_closes(store, monkeypatch):
    def interrupted(database):
        raise KeyboardInterrupt

    monkeypatch.setattr(space, "vacuum", interrupted)
    monkeypatch.setattr(space, "WORTH_VACUUMING_BYTES", 1)
    fill(store, 1)
    store.remove("W", removal(1))
    with pytest.raises(KeyboardInterrupt):
        store.close()
    with pytest.raises(StoreClosedError):
        store.head("W")


def test_commits_go_on_while_room_is_given_back(store):
    history = fill(store, 8)
    store.remove("W", removal(7))
    over = threading.Event()

    def vacuum():
        for _ in range(5):
            space.vacuum(store._database)
        over.set()

    thread = threading.Thread(target=vacuum)
    thread.start()
    commits = 0
    while not over.is_set() or not commits:
        history.commit(group=8)
        commits += 1
    thread.join()
    assert store.head("W") == history.head


def test_tables_know_that_they_hold_large_values(store):
    found = dict(
        store._database.rows(
            "select relname, array_to_string(reloptions, ' ') from pg_class "
            "where relnamespace = to_regnamespace(current_schema()) and reloptions is not null"
        )
    )
    assert {"checkpoints", "events", "keyframes", "blobs"} <= set(found)
