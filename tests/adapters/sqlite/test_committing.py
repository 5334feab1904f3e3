"""Commits in one transaction: who loses drops out alone, and no head is believed for too long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.sqlite.driver import Connection
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History, blob_name
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    DiskFullError,
    InvalidIdError,
)
from holdfast.domain.record import Commit, Head, Record


@pytest.fixture
def store(fast_folder: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(str(fast_folder / "store.db"))
    yield store
    store.close()


class Listening:
    """A connection that notes what it is asked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.asked: list[str] = []

    def execute(self, sql: str, *parameters: Any) -> Any:
        self.asked.append(" ".join(sql.split()))
        return self._connection.execute(sql, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def listen(store: SqliteStore) -> list[str]:
    """Listen to the connection that writes from now on."""
    assert store._database._writer is not None
    listening = Listening(store._database._writer)
    store._database._writer = listening
    return listening.asked


def renamed(commit: Commit, **changes: Any) -> Commit:
    assert commit.record is not None
    entry = replace(commit.record.entry, **changes)
    return replace(commit, record=Record(entry, commit.record.data))


def test_one_call_is_one_transaction(store: SqliteStore) -> None:
    drafts = [History(store, f"W{n}").draft() for n in range(5)]
    asked = listen(store)
    assert store.commit(drafts) == [None] * 5
    assert [sql for sql in asked if sql in ("begin immediate", "commit", "rollback")] == [
        "begin immediate",
        "commit",
    ]


def test_a_head_is_remembered_while_nobody_else_writes(store: SqliteStore) -> None:
    history = History(store)
    history.commit()
    asked = listen(store)
    history.commit()
    asked.clear()
    history.commit()
    assert not any("order by" in sql for sql in asked)


def test_a_head_is_forgotten_once_somebody_else_wrote(store: SqliteStore) -> None:
    mine, other = History(store), SqliteStore.open(store._database.path)
    mine.commit()
    theirs = History(other)
    theirs.commit()
    assert isinstance(store.commit([mine.draft()])[0], CheckpointConflictError)
    mine.head = store.head("W")
    mine.commit()
    assert isinstance(other.commit([theirs.draft()])[0], CheckpointConflictError)
    other.close()


def test_a_head_of_a_transaction_that_failed_is_forgotten(store: SqliteStore) -> None:
    history = History(store)
    history.commit()
    store._database.outside("pragma max_page_count = 1")
    draft = history.draft(text="x" * 100_000)
    with pytest.raises(DiskFullError):
        store.commit([draft])
    assert store.head("W") == history.head
    store._database.outside("pragma max_page_count = 1000000")
    assert store.commit([draft]) == [None]


def test_many_workflows_do_not_fill_the_memory(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.adapters.sqlite.committing._HEADS_MAX", 3)
    for number in range(10):
        History(store, f"W{number}").commit()
        assert len(store._heads._known) <= 4
    for number in range(10):
        assert store.head(f"W{number}").sequence == 1


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda commit: renamed(commit, label="\ud800"), InvalidIdError),
        (lambda commit: renamed(commit, blobs=("0" * 64,)), CheckpointNotFoundError),
        (lambda commit: replace(commit, events=commit.events * 2), CheckpointConflictError),
    ],
    ids=["a text that is none", "a blob that is nowhere", "an event twice"],
)
def test_what_is_wrong_with_one_commit_does_not_hurt_the_others(
    spoil: Any, kind: type[Exception], store: SqliteStore
) -> None:
    a, b, c = (History(store, name) for name in "ABC")
    blob = {blob_name(b"b"): b"b"}
    group = [a.draft(), spoil(b.draft(blobs=blob, keyframe=b"k")), c.draft()]
    outcomes = store.commit(group)
    assert [type(outcome) for outcome in outcomes] == [type(None), kind, type(None)]
    assert store.head("A") == group[0].head and store.head("C") == group[2].head
    assert store.head("B") == Head()
    assert not store.has_blob(blob_name(b"b"))
    assert [type(outcome) for outcome in store.commit([spoil(b.draft(blobs=blob))])] == [kind]
    assert store.commit([b.draft(blobs=blob)]) == [None]


def test_a_blob_that_was_named_twice_is_used_once(store: SqliteStore) -> None:
    name = blob_name(b"blob")
    history = History(store)
    store.commit([renamed(history.draft(blobs={name: b"blob"}), blobs=(name, name))])
    assert store._database.rows("select sha256, sequence, kind from blob_uses") == [(name, 1, "record")]
