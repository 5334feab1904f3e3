"""Whatever is wrong with the rows of trails is told, and nothing else."""

from __future__ import annotations

import pytest

from holdfast.adapters.sql import trail_check
from holdfast.adapters.sql.database import NOTHING, Parameters, Row
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.conformance.trailing import about_the_store, told
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.payload import encode_payload

PAYLOAD = encode_payload({"why": "because"}, bytes(32))


@pytest.fixture(params=[2, 200])
def filled(
    request: pytest.FixtureRequest, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> SqliteStore:
    """Entries 1 to 4 of a session, the third with a payload, and between them those of another."""
    monkeypatch.setattr(trail_check, "RECORDS_AT_ONCE", request.param)
    for commit in (told(1), told(2, "s-2"), told(3, stored=PAYLOAD), told(4)):
        assert store.commit([about_the_store(commit)]) == [None]
    return store


def test_sound_trails_have_no_findings(filled: SqliteStore, database: SqliteDatabase) -> None:
    assert list(trail_check.check_trails(database)) == []
    filled.commit([about_the_store(told(5), erased=(("s-1", 3),))])
    assert list(trail_check.check_trails(database)) == []
    assert [finding for finding in filled.check()] == []


CUT = "an audit entry is not the one that was committed"


@pytest.mark.parametrize(
    ("damage", "places", "problem"),
    [
        ("delete from audit where seq = 2 and session_id = 's-1'", "4", "entries of its session before"),
        ("delete from audit where seq = 1 and session_id = 's-1'", "4", "entries of its session before"),
        ("update audit set leaf = leaf + 1 where leaf = 5", "4", "places of the tree before it are empty"),
        ("update audit set leaf = -1 where leaf = 0", "4", "places of the tree before it are empty"),
        ("update audit set hash = 'sha256:0' where leaf = 4", "3", CUT),
        ("update audit set timestamp = '' where leaf = 4", "3", CUT),
        ("update audit set type = 'X' where leaf = 4", "3", CUT),
        ("update audit set workflow_id = null where leaf = 4", "3", CUT),
        ("update audit set line = cast(replace(line, 'ann', 'bob') as blob) where leaf = 4", "3", CUT),
        ("update audit set line = 'text' where leaf = 4", "3", "a row does not hold what Holdfast writes"),
        ("update audit set payload = x'00' where leaf = 4", "3", "its payload is not the one it commits to"),
        ("update audit set payload = x'00' where leaf = 5", "4", "its payload is not the one it commits to"),
        ("update audit set payload = 'a' where leaf = 4", "3", "a row does not hold what Holdfast writes"),
    ],
)
def test_each_kind_of_damage_is_found(
    damage: str, places: str, problem: str, filled: SqliteStore, database: SqliteDatabase
) -> None:
    with database.transaction() as transaction:
        assert transaction.run(damage)
    findings = list(trail_check.check_trails(database))
    assert f"audit entry {places} of session s-1" in [finding.place for finding in findings]
    assert any(problem in finding.problem for finding in findings)
    assert all(finding.harm for finding in findings)
    assert set(findings) <= set(filled.check())


def test_entries_that_changed_places_are_found(filled: SqliteStore, database: SqliteDatabase) -> None:
    with database.transaction() as transaction:
        for before, after in ((4, 9), (5, 4), (9, 5)):
            transaction.run("update audit set leaf = :a where leaf = :b", {"a": after, "b": before})
    [finding] = trail_check.check_trails(database)
    assert finding.place == "audit entry 4 of session s-1"
    assert "came earlier" in finding.problem


class DamagedDatabase:
    """Some of whose pages cannot be read."""

    def rows(self, sql: str, parameters: Parameters = NOTHING) -> list[Row]:
        raise CheckpointCorruptError("the database is damaged", place="store.db")


def test_what_cannot_be_asked_is_a_finding_each_time() -> None:
    findings = list(trail_check.check_trails(DamagedDatabase()))
    assert len(findings) == 4
    assert {finding.place for finding in findings} == {"store.db"}


@pytest.mark.parametrize(
    "change", ["hash = 'sha256:0'", "timestamp = ''", "type = 'X'", "workflow_id = null"]
)
def test_columns_beside_a_whole_line_are_compared_with_it(
    change: str, filled: SqliteStore, database: SqliteDatabase
) -> None:
    """Lines were stored whole once."""
    whole = list(filled.leaves())[4]
    with database.transaction() as transaction:
        transaction.run("update audit set line = :line where leaf = 4", {"line": whole})
    assert list(trail_check.check_trails(database)) == []
    with database.transaction() as transaction:
        transaction.run(f"update audit set {change} where leaf = 4")
    problems = [finding.problem for finding in trail_check.check_trails(database)]
    assert problems == ["its columns are not what its line says"]
