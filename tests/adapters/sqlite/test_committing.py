"""Commits in one transaction: who loses drops out alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History, blob_name
from holdfast.conformance.trailing import about_the_store, check_trail, numbers, told
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    InvalidIdError,
    InvalidStateError,
    LeaseHeldError,
    UnstorableValueError,
)
from holdfast.domain.record import Commit, Head, Record
from tests.adapters.sqlite.listening import listen


@pytest.fixture
def store(fast_folder: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(str(fast_folder / "store.db"))
    yield store
    store.close()


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


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda commit: renamed(commit, label="\ud800"), InvalidIdError),
        (lambda commit: renamed(commit, blobs=("0" * 64,)), CheckpointNotFoundError),
        (lambda commit: replace(commit, events=commit.events * 2), CheckpointConflictError),
        (lambda commit: replace(commit, audit=(told(1), replace(told(2), type="x"))), InvalidStateError),
        (lambda commit: replace(commit, audit=(replace(told(1), facts={"X": 1}),)), UnstorableValueError),
        (lambda commit: replace(commit, files={"../x": b""}), InvalidIdError),
        (lambda commit: replace(commit, expected_files={"a": b""}), CheckpointConflictError),
    ],
    ids=[
        *("a text that is none", "a blob that is nowhere", "an event twice"),
        *("an entry of no type", "a fact that is none", "a file elsewhere", "a file that is not there"),
    ],
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


def test_an_entry_is_in_the_transaction_of_its_commit(store: SqliteStore) -> None:
    History(store).commit(audit=(told(1),))
    asked = listen(store)
    assert store.commit([about_the_store(told(2), files={"a": b"1"}), about_the_store(told(3))]) == [None] * 2
    assert asked[0] == "begin immediate" and asked[-1] == "commit" and asked.count("commit") == 1
    assert numbers(store.leaves()) == [1, 2, 3]


def test_what_a_commit_of_the_same_call_left_is_what_the_next_one_finds(store: SqliteStore) -> None:
    first = about_the_store(files={"a": b"1"}, expected_files={"a": None})
    second = about_the_store(told(1), files={"a": b"2"}, expected_files={"a": b"1"})
    outcomes = store.commit([first, second, second])
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), CheckpointConflictError]
    assert (store.file("a"), numbers(store.trail("s-1"))) == (b"2", [1])


def test_what_concerns_no_workflow_needs_no_lease(store: SqliteStore) -> None:
    history = History(store)
    store.acquire("W", "ann", 60)
    outcomes = store.commit([about_the_store(told(1)), history.draft(audit=(told(2),))])
    assert [type(outcome) for outcome in outcomes] == [type(None), LeaseHeldError]
    assert numbers(store.trail("s-1")) == [1]


def test_trails_survive_a_call_that_has_to_be_tried_one_by_one(store: SqliteStore) -> None:
    spoilt = renamed(History(store, "B").draft(audit=(told(2),)), blobs=("0" * 64,))
    outcomes = store.commit([about_the_store(told(1)), spoilt, about_the_store(told(3))])
    assert [type(outcome) for outcome in outcomes] == [type(None), CheckpointNotFoundError, type(None)]
    assert numbers(store.leaves()) == [1, 3]
    assert check_trail(store, "s-1").seq == 3
