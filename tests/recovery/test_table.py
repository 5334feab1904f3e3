"""The page on recovery has every row of the documents' matrices, and every test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.named_tests import undefined

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| (?P<case>[^|]+) \| (?P<asks>[^|]+) \| (?P<does>[^|]+) \| (?P<shown>`tests[^|]+) \|$", re.M
)
TEST = re.compile(r"`(tests/[\w/]+\.py::test_\w+)`")
ROWS = list(ROW.finditer((ROOT / "docs" / "recovery.md").read_text("utf-8")))
NAMED = {name for row in ROWS for name in TEST.findall(row["shown"])}
#: Rows of the five documents, by table: matrix, ladder, partial failure, decision tree, scenarios, the rest.
COUNTS = 5 + 3 + 6 + 10 + 3 + 7


def test_no_row_is_missing() -> None:
    assert len(ROWS) == COUNTS


def test_every_test_in_the_table_is_there() -> None:
    assert undefined(NAMED) == set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case"].strip())
def test_every_row_is_shown_by_a_test_and_by_nothing_else(row: re.Match[str]) -> None:
    assert TEST.findall(row["shown"]) and TEST.sub("", row["shown"]).strip() == ""
