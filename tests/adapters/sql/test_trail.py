"""Trails, leaves and files out of tables, whatever the pieces they are read in."""

from __future__ import annotations

import pytest

from holdfast.adapters.sql import trail
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.trailing import MOMENT, about_the_store, numbers, told
from holdfast.domain import trail as trails
from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointConflictError, CheckpointCorruptError, InvalidIdError
from holdfast.domain.payload import encode_payload

COUNT = 7
PAYLOAD = encode_payload({"why": "because"}, bytes(32))


@pytest.fixture(params=[1, 3, COUNT + 1, 1000])
def filled(
    request: pytest.FixtureRequest, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> SqliteStore:
    """Seven entries in each of two sessions, turn by turn, read in pieces of different sizes."""
    monkeypatch.setattr(trail, "LISTED_AT_ONCE", request.param)
    for number in range(1, COUNT + 1):
        entries = (told(number, "s-1"), told(number, "s-2", PAYLOAD))
        assert store.commit([about_the_store(*entries, files={f"keys/{number}.json": b"k"})]) == [None]
    return store


def test_trails_and_leaves_are_whole_whatever_their_pieces(filled: SqliteStore) -> None:
    both = range(1, COUNT + 1)
    assert numbers(filled.trail("s-2")) == [*both]
    assert numbers(filled.trail("s-2", after=3)) == [*both][2:]
    assert numbers(filled.leaves()) == [number for number in both for _ in range(2)]
    assert len(list(filled.leaves(after=5))) == 2 * COUNT + 2 - 5
    assert list(filled.files("keys/")) == [f"keys/{number}.json" for number in both]


def test_what_has_no_place_yet_waits_in_the_order_of_its_session(filled: SqliteStore) -> None:
    class Unplaced:
        """The same rows, as if none had its place."""

        def rows(self, sql: str, parameters: object) -> object:
            rest = sql.replace("leaf is null", "leaf is not null")
            return filled._database.rows(rest, parameters)

        def transaction(self) -> object:
            raise AssertionError

    waiting = trail.TrailReading(Unplaced()).waiting()
    assert list(waiting) == [*filled.trail("s-1"), *filled.trail("s-2")]
    assert list(filled.waiting()) == []


def test_the_beginning_of_a_name_is_taken_literally(store: SqliteStore) -> None:
    names = ["a_b", "axb", "keys/a", "keys/b", "keys2"]
    store.commit([about_the_store(files=dict.fromkeys(names, b"x"))])
    assert list(store.files("")) == names
    assert list(store.files("a_")) == ["a_b"]
    assert list(store.files("keys/")) == ["keys/a", "keys/b"]
    for strange in ("%", "_", "k%", "keys/a/", "\U0010ffff"):
        assert list(store.files(strange)) == []


def test_rows_say_what_lines_say(store: SqliteStore, database: SqliteDatabase) -> None:
    closing = AuditEntry(MOMENT, AuditType.SESSION_CLOSED, "s-1")
    store.commit([about_the_store(told(1, stored=PAYLOAD), closing)])
    found = database.rows("select seq, leaf, type, workflow_id, timestamp, hash, payload from audit")
    lines = [trails.decode_entry(line, None) for line in store.trail("s-1")]
    assert [row[:4] for row in found] == [
        (1, 0, "SESSION_STARTED", None),
        (2, 1, "AGENT_DECISION", "W"),
        (3, 2, "SESSION_CLOSED", None),
    ]
    assert [row[5] for row in found] == [entry.hash for entry in lines]
    assert [row[6] for row in found] == [None, PAYLOAD, None]
    assert store.trail_head("s-1") == TrailHead("s-1", 3, found[2][5], found[2][4], closed=True)


def test_entries_can_be_appended_without_a_place(database: SqliteDatabase) -> None:
    records = trails.chain([told(1)], TrailHead)
    assert [trail.audit_parameters(record)["leaf"] for record in records] == [None, None]
    assert trail.tree_size(database) == 0
    with database.transaction() as transaction:
        trail.append(transaction, records, leaf=0)
        assert trail.tree_size(transaction) == 2
        assert trail.read_trail_head(transaction, "s-1") == records[-1].head


def test_files_are_compared_before_they_are_replaced(database: SqliteDatabase) -> None:
    with database.transaction() as transaction:
        trail.keep_files(transaction, about_the_store(files={"a": b"1", "b": b"", "c": b""}))
        trail.keep_files(transaction, about_the_store(files={"a": b"2", "c": None}))
        right = about_the_store(expected_files={"a": b"2", "b": b"", "c": None})
        assert trail.file_refusal(transaction, right) is None
        for believed in ({"a": b"1"}, {"a": None}, {"b": None}, {"c": b""}):
            wrong = about_the_store(expected_files=believed)
            assert isinstance(trail.file_refusal(transaction, wrong), CheckpointConflictError)
        strange = about_the_store(expected_files={"../a": None})
        assert isinstance(trail.file_refusal(transaction, strange), InvalidIdError)


def test_what_was_changed_behind_our_back_is_not_returned(
    store: SqliteStore, database: SqliteDatabase
) -> None:
    store.commit([about_the_store(told(1, stored=PAYLOAD), files={"a": b"1"})])
    with database.transaction() as transaction:
        transaction.run("update audit set line = 'text', payload = 'text', hash = x'00'")
        transaction.run("update files set data = 'text'")
    for call in (
        lambda: list(store.trail("s-1")),
        lambda: list(store.leaves()),
        lambda: store.payload("s-1", 2),
        lambda: store.trail_head("s-1"),
        lambda: store.file("a"),
    ):
        with pytest.raises(CheckpointCorruptError):
            call()
