"""What is read in pieces is what would be read at once."""

from __future__ import annotations

import pytest

from holdfast.adapters.sql.database import NOTHING, Parameters, Row
from holdfast.adapters.sql.pieces import pieces
from holdfast.adapters.sqlite.database import SqliteDatabase

PAIRS = [(name, number) for name in ("", "a", "b") for number in range(1, 6)]
NUMBERS = (
    "select number, name from pairs where number > :after and name = :name order by number limit :at_once"
)
ALL = """
select name, number from pairs where (name, number) > (:name, :number) order by name, number limit :at_once
"""


@pytest.fixture
def pairs(database: SqliteDatabase) -> SqliteDatabase:
    with database.transaction() as transaction:
        transaction.run("create table pairs (name text, number integer)")
        for name, number in PAIRS:
            transaction.run("insert into pairs values (:name, :number)", {"name": name, "number": number})
    return database


@pytest.mark.parametrize("at_once", [1, 2, 5, len(PAIRS), len(PAIRS) + 1])
def test_pieces_hold_every_row_once_and_in_order(at_once: int, pairs: SqliteDatabase) -> None:
    found = pieces(pairs, NUMBERS, {"name": "a"}, ("after",), (2,), at_once)
    assert list(found) == [(3, "a"), (4, "a"), (5, "a")]
    assert list(pieces(pairs, ALL, NOTHING, ("name", "number"), ("", 0), at_once)) == PAIRS


def test_what_was_not_asked_for_is_not_read(pairs: SqliteDatabase) -> None:
    found = pieces(pairs, ALL, NOTHING, ("name", "number"), ("", 0), 5)
    assert next(found) == ("", 1)
    with pairs.transaction() as transaction:
        transaction.run("delete from pairs")
    assert list(found) == PAIRS[1:5]


def test_the_first_piece_is_as_small_as_asked_for_and_the_next_are_larger(pairs: SqliteDatabase) -> None:
    sizes: list[int] = []

    class Counting:
        def rows(self, sql: str, parameters: Parameters = NOTHING) -> list[Row]:
            sizes.append(parameters["at_once"])
            return pairs.rows(sql, parameters)

    assert list(pieces(Counting(), ALL, NOTHING, ("name", "number"), ("", 0), 6, 2)) == PAIRS
    assert sizes == [2, 6, 6, 6]
