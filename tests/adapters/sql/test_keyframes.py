"""A derived keyframe is stored beside its checkpoint, once."""

from __future__ import annotations

import pytest

from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History, blob_name, make_keyframe
from holdfast.domain.errors import CheckpointNotFoundError


def test_one_that_is_there_already_stays_as_it_is(store: SqliteStore) -> None:
    History(store).commit(keyframe=b"first")
    store.put_keyframe("W", make_keyframe(1, b"second"))
    assert store.keyframe("W", 1) == b"first"


def test_it_needs_its_checkpoint_and_its_blobs(store: SqliteStore, database: SqliteDatabase) -> None:
    History(store).commit()
    with pytest.raises(CheckpointNotFoundError, match="W@2"):
        store.put_keyframe("W", make_keyframe(2, b"two"))
    with pytest.raises(CheckpointNotFoundError, match="0000"):
        store.put_keyframe("W", make_keyframe(1, b"one", blobs=("0" * 64,)))
    assert store.keyframes("W") == []


def test_a_blob_that_it_names_twice_is_used_once(store: SqliteStore, database: SqliteDatabase) -> None:
    name = blob_name(b"blob")
    History(store).commit(blobs={name: b"blob"})
    store.put_keyframe("W", make_keyframe(1, b"one", blobs=(name, name)))
    assert database.rows("select sha256 from blob_uses where kind = 'keyframe'") == [(name,)]


def test_one_that_is_damaged_gives_way_with_what_it_used(
    store: SqliteStore, database: SqliteDatabase
) -> None:
    old, new = blob_name(b"old"), blob_name(b"new")
    History(store).commit(blobs={old: b"old", new: b"new"})
    store.put_keyframe("W", make_keyframe(1, b"first", blobs=(old,)))
    with database.transaction() as transaction:
        transaction.run("update keyframes set data = :data", {"data": b"spoilt"})
    with pytest.raises(CheckpointNotFoundError, match="0000"):
        store.put_keyframe("W", make_keyframe(1, b"second", blobs=("0" * 64,)))
    assert database.rows("select data from keyframes") == [(b"spoilt",)]
    store.put_keyframe("W", make_keyframe(1, b"second", blobs=(new,)))
    assert store.keyframe("W", 1) == b"second"
    assert [keyframe.sha256 for keyframe in store.keyframes("W")] == [blob_name(b"second")]
    assert database.rows("select sha256 from blob_uses where kind = 'keyframe'") == [(new,)]


@pytest.mark.parametrize("value", ["'text'", "7"])
def test_one_whose_row_holds_no_bytes_gives_way_too(
    store: SqliteStore, database: SqliteDatabase, value: str
) -> None:
    History(store).commit(keyframe=b"first")
    with database.transaction() as transaction:
        transaction.run(f"update keyframes set data = {value}")
    store.put_keyframe("W", make_keyframe(1, b"second"))
    assert store.keyframe("W", 1) == b"second"
