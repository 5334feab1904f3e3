"""Whatever is wrong with the tables is told, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.adapters.sql.database import NOTHING, Parameters, Row
from holdfast.adapters.sql.inspect import check_tables, count_tables
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.history import History, blob_name
from holdfast.conformance.trailing import about_the_store, told
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.record import Removal

BLOB = b"some blob"


@pytest.fixture
def filled(store: SqliteStore) -> Iterator[SqliteStore]:
    history = History(store)
    history.commit(keyframe=b"one", blobs={blob_name(BLOB): BLOB})
    history.commit()
    history.commit()
    store.commit([about_the_store(told(1, stored=b"payload"), files={"tile": b"tile"})])
    yield store


def test_a_sound_store_has_no_findings(filled: SqliteStore, database: SqliteDatabase) -> None:
    assert list(check_tables(database)) == []
    filled.remove("W", Removal(sequences=(1, 2), events_through=3))
    assert list(check_tables(database)) == []


@pytest.mark.parametrize(
    ("damage", "place", "problem"),
    [
        ("update checkpoints set data = null where sequence = 2", "W@2", "its record is gone"),
        ("update checkpoints set data = x'00' where sequence = 2", "W@2", "its record is cut or too long"),
        ("delete from checkpoints where sequence = 2", "W@3", "checkpoints before it are gone"),
        ("delete from events where seq = 2", "W@3", "events before it are gone"),
        ("delete from events where seq = 3", "W@3", "the events it was made after are gone"),
        ("delete from blobs", "W@1", "a blob it refers to is gone"),
        ("update keyframes set data = x'00'", "keyframe W@1", "the bytes are not what was committed"),
        ("update blobs set data = x'00'", f"blob {blob_name(BLOB)}", "the bytes are not what was committed"),
        ("update keyframes set data = 'text'", "keyframe W@1", "a row does not hold what Holdfast writes"),
    ],
)
def test_each_kind_of_damage_is_found(
    damage: str, place: str, problem: str, filled: SqliteStore, database: SqliteDatabase
) -> None:
    database.outside("pragma foreign_keys = off")
    with database.transaction() as transaction:
        assert transaction.run(damage)
    [finding] = check_tables(database)
    assert (finding.place, finding.problem, finding.harm) == (place, problem, True)


class DamagedDatabase:
    """Some of whose pages cannot be read."""

    def rows(self, sql: str, parameters: Parameters = NOTHING) -> list[Row]:
        raise CheckpointCorruptError("the database is damaged", place="store.db")


def test_what_cannot_be_asked_is_a_finding_each_time() -> None:
    findings = list(check_tables(DamagedDatabase()))
    assert len(findings) > 3
    assert {finding.place for finding in findings} == {"store.db"}


def test_counts_tell_what_is_kept(filled: SqliteStore, database: SqliteDatabase) -> None:
    counts = count_tables(database)
    names = ("workflows", "checkpoints", "events", "keyframes", "blobs", "audit_entries", "sessions", "files")
    assert [counts[name] for name in names] == [1, 3, 3, 1, 1, 2, 1, 1]
    # What is stored, which is less than what is told: the columns are not in it.
    lines = sum(len(line) for (line,) in database.rows("select line from audit"))
    assert counts["kinds"]["audit_entries"] == lines + len(b"payload")
    assert lines < len(b"".join(filled.trail("s-1")))
    assert counts["kinds"]["files"] == len(b"tile")
    assert counts["kinds"]["blobs"] == len(BLOB)
    assert counts["bytes"] == sum(counts["kinds"].values())
    filled.remove("W", Removal(sequences=(1,), groups=(1,), events_through=3, blobs=(blob_name(BLOB),)))
    counts = count_tables(database)
    assert [counts[name] for name in names[:5]] == [1, 2, 0, 0, 0]
    kinds = counts["kinds"]
    assert counts["bytes"] == kinds["audit_entries"] + kinds["files"]


def test_empty_tables_count_nothing(database: SqliteDatabase) -> None:
    counts = count_tables(database)
    assert counts["bytes"] == counts["workflows"] == counts["checkpoints"] == 0
    assert counts["audit_entries"] == counts["sessions"] == counts["files"] == 0
