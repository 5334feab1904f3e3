"""Evidence out of tables: raw, whatever a column was changed to, and as much as can be read."""

from __future__ import annotations

from holdfast.adapters.sql.evidence import evidence
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History, blob_name
from holdfast.domain.errors import CheckpointCorruptError


def change(database: SqliteDatabase, statement: str) -> None:
    with database.transaction() as transaction:
        transaction.run(statement)


def test_changed_bytes_are_given_as_they_are(store: SqliteStore, database: SqliteDatabase) -> None:
    History(store).commit(keyframe=b"one", blobs={blob_name(b"b"): b"b"})
    for table in ("checkpoints", "keyframes", "blobs"):
        change(database, f"update {table} set data = x'00ff'")
    found = list(store.evidence("W", 1))
    assert [name for name, _ in found] == ["record", "keyframe", f"blob-{blob_name(b'b')}"]
    assert {data for _, data in found} == {b"\x00\xff"}


def test_names_of_blobs_that_cannot_be_read_hide_nothing_else(
    store: SqliteStore, database: SqliteDatabase
) -> None:
    history = History(store)
    history.commit(keyframe=b"one", blobs={blob_name(b"b"): b"b"})
    change(database, "update checkpoints set blobs = '[1, 2'")
    assert list(store.evidence("W", 1)) == [("record", history.records[1]), ("keyframe", b"one")]


class Broken:
    """Tables of which one cannot be read."""

    def __init__(self, database: SqliteDatabase, table: str) -> None:
        self._database = database
        self._table = table

    def rows(self, sql, parameters=()):
        if f"data from {self._table}" in sql:
            raise CheckpointCorruptError("the page is damaged")
        return self._database.rows(sql, parameters)


def test_what_cannot_be_read_is_left_out(store: SqliteStore, database: SqliteDatabase) -> None:
    History(store).commit(keyframe=b"one", blobs={blob_name(b"b"): b"b"})
    names = {
        table: [name.partition("-")[0] for name, _ in evidence(Broken(database, table), "W", 1)]
        for table in ("checkpoints", "keyframes", "blobs")
    }
    assert names == {
        "checkpoints": ["keyframe", "blob"],
        "keyframes": ["record", "blob"],
        "blobs": ["record", "keyframe"],
    }


def test_text_and_numbers_in_place_of_bytes_are_evidence_too(
    store: SqliteStore, database: SqliteDatabase
) -> None:
    class Odd:
        def rows(self, sql, parameters=()):
            answers = {
                "data from checkpoints": "text",
                "data from keyframes": 7,
                "data from": memoryview(b"x"),
            }
            found = [value for part, value in answers.items() if part in sql]
            return [(found[0],)] if found else [('["' + "0" * 64 + '"]',)]

    assert list(evidence(Odd(), "W", 1)) == [
        ("record", b"text"),
        ("keyframe", b"7"),
        (f"blob-{'0' * 64}", b"x"),
    ]
