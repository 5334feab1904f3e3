"""The page on running workflows has every trigger, hook and scenario, and every test that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.execution.triggers import Trigger
from tests.named_tests import undefined

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| (?P<case>[^|]+) \| (?P<asks>[^|]+) \| (?P<does>[^|]+) \| (?P<shown>[^|]*) \|$", re.MULTILINE
)
TEST = re.compile(r"`(tests/[\w/]+\.py::test_\w+)`")
PAGE = (ROOT / "docs" / "execution.md").read_text("utf-8")
ROWS = [row for row in ROW.finditer(PAGE) if row["case"] != "case"]
NAMED = {name for row in ROWS for name in TEST.findall(row["shown"])}
#: Rows by table: triggers, the hooks of orchestrator, specialists and evaluator, scenarios, acceptance
#: criteria, error handling, layers and the resume flow.
COUNTS = 12 + 4 + 8 + 7 + 7 + 10 + 4 + 6


def test_no_row_is_missing() -> None:
    assert len(ROWS) == COUNTS


def test_every_trigger_has_a_row() -> None:
    assert {str(trigger) for trigger in Trigger} <= {row["case"] for row in ROWS}


def test_every_test_in_the_table_is_there() -> None:
    assert undefined(NAMED) == set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case"])
def test_every_row_is_shown_by_a_test_and_by_nothing_else(row: re.Match[str]) -> None:
    assert TEST.findall(row["shown"]) and TEST.sub("", row["shown"]).strip() == ""
