"""The page on recovery has every row of the documents' matrices, and every test that it names exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(
    r"^\| (?P<case>[^|]+) \| (?P<asks>[^|]+) \| (?P<does>[^|]+) \| (?P<shown>`tests[^|]+) \|$", re.M
)
TEST = re.compile(r"`(tests/[\w/]+\.py::test_\w+)`")
ROWS = list(ROW.finditer((ROOT / "docs" / "recovery.md").read_text("utf-8")))
NAMED = {name for row in ROWS for name in TEST.findall(row["shown"])}
#: Rows of the five documents, by table: matrix, ladder, partial failure, decision tree, scenarios, the rest.
COUNTS = 5 + 3 + 6 + 10 + 3 + 7


@pytest.fixture(scope="module")
def collected() -> set[str]:
    """Ask pytest for every test of the files that the table names."""
    files = sorted({name.partition("::")[0] for name in NAMED})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout[-2000:]
    return {line.partition("[")[0] for line in result.stdout.splitlines() if "::" in line}


def test_no_row_is_missing() -> None:
    assert len(ROWS) == COUNTS


def test_every_test_in_the_table_is_collected(collected: set[str]) -> None:
    assert NAMED - collected == set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["case"].strip())
def test_every_row_is_shown_by_a_test_and_by_nothing_else(row: re.Match[str]) -> None:
    assert TEST.findall(row["shown"]) and TEST.sub("", row["shown"]).strip() == ""
