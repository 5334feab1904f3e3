"""Removing takes bytes, leaves tombstones, and tells how much it gave back."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holdfast.adapters.sql import removing
from holdfast.adapters.sql.cutting import cut_event, cut_record
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History, blob_name, make_keyframe
from holdfast.domain.record import Removal


@given(st.lists(st.integers(0, 60)))
def test_runs_hold_each_number_once_and_no_gap(numbers: list[int]) -> None:
    found = list(removing.runs(numbers))
    assert [n for first, last in found for n in range(first, last + 1)] == sorted(set(numbers))
    assert all(before[1] + 1 < after[0] for before, after in pairwise(found))


def test_bytes_given_back_are_those_that_went(store: SqliteStore) -> None:
    history, blob = History(store), b"only here"
    first = history.commit(keyframe=b"keyframe", blobs={blob_name(blob): blob})
    second = history.commit(group=2)
    assert first.record is not None and second.record is not None
    lines = len(cut_record("W", first.record)) + len(cut_event("W", first.events[0]))
    gone = lines + len(b"keyframe") + len(blob)
    removal = Removal((1,), (1,), events_through=1, blobs=(blob_name(blob),))
    assert store.remove("W", removal) == gone
    assert store.remove("W", removal) == 0


def test_an_empty_blob_goes_too(store: SqliteStore) -> None:
    History(store).commit(blobs={blob_name(b""): b""})
    store.remove("W", Removal((1,), (1,), blobs=(blob_name(b""),)))
    assert not store.has_blob(blob_name(b""))


def test_the_last_event_stays_as_where_the_workflow_stands(store: SqliteStore) -> None:
    history = History(store)
    for _ in range(3):
        history.commit()
    store.remove("W", Removal((), events_through=3))
    assert list(store.events("W")) == []
    assert store.head("W") == history.head
    assert list(store.workflows()) == ["W"]
    following = history.commit()
    assert list(store.events("W")) == [following.events[0].data]
    store.remove("W", Removal((), events_through=3))
    assert store._database.rows("select seq from events") == [(4,)]


def test_of_other_workflows_nothing_goes(store: SqliteStore) -> None:
    for name in ("V", "W", "X"):
        History(store, name).commit(keyframe=b"same")
    store.remove("W", Removal((1,), (1,), events_through=9))
    for name in ("V", "X"):
        assert len(list(store.records(name, 1, 1))) == len(list(store.events(name))) == 1
        assert store.keyframe(name, 1) == b"same"


def test_uses_of_blobs_go_with_what_used_them(store: SqliteStore, database: SqliteDatabase) -> None:
    blob = b"used twice"
    history = History(store)
    history.commit(blobs={blob_name(blob): blob})
    history.commit(group=2)
    store.put_keyframe("W", make_keyframe(2, b"two", (blob_name(blob),)))
    store.remove("W", Removal((1,), (1,), blobs=(blob_name(blob),)))
    assert database.rows("select sequence, kind from blob_uses") == [(2, "keyframe")]
    store.remove("W", Removal((2,), (2,), blobs=(blob_name(blob),)))
    assert database.rows("select * from blob_uses") == database.rows("select * from blobs") == []
