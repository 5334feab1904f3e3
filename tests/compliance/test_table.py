"""The page on compliance has all of its statements, and every test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.named_tests import undefined

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| (?P<number>\d+) \| (?P<asks>[^|]+) \| (?P<does>[^|]+) \| (?P<shown>[^|]+) \|$", re.MULTILINE
)
TEST = re.compile(r"`(tests/[\w/]+\.py::test_\w+)`")
OPEN = "to be shown"
#: Statements that are not shown as a whole yet: whoever shows one takes it out here and in the table.
UNFINISHED: set[int] = set()

ROWS = {int(row["number"]): row for row in ROW.finditer((ROOT / "docs" / "compliance.md").read_text("utf-8"))}
NAMED = {name for row in ROWS.values() for name in TEST.findall(row["shown"])}


def test_there_are_twenty_four_statements_in_their_order():
    assert list(ROWS) == list(range(1, 25))


def test_every_test_in_the_table_is_there():
    assert undefined(NAMED) == set()


@pytest.mark.parametrize("number", range(1, 25))
def test_every_statement_is_shown_by_a_test(number):
    row = ROWS[number]
    assert TEST.findall(row["shown"])
    # Nothing but names of tests stands in the last column, so that none is overlooked for a typing error.
    assert TEST.sub("", row["shown"]).strip() == ""


def test_what_is_still_to_be_shown_is_said_where_it_is():
    assert {number for number, row in ROWS.items() if OPEN in row["does"]} == UNFINISHED
