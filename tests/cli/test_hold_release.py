from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, fill


@pytest.fixture
def place(tmp_path: Path) -> Path:
    fill(tmp_path / "held", retain=False)
    return tmp_path / "held"


def test_a_hold_that_is_not_there_cannot_be_released(run: Run, place: Path):
    assert run("hold", "release", "12345678", "--reason", "r", "--store", place).exit_code == Exit.NOT_FOUND


def test_a_dry_run_tells_which_hold_it_is_and_leaves_it(run: Run, place: Path):
    hold = run("hold", "place", "--reason", "case 17", "--json", "--store", place).data["id"]
    told = run("hold", "release", hold, "--reason", "over", "--dry-run", "--store", place)
    assert told.out.startswith(f"Would release hold {hold} on ")
    assert len(run("hold", "list", "--json", "--store", place).data["holds"]) == 1
    missing = run("hold", "release", "12345678", "--reason", "r", "--dry-run", "--store", place)
    assert missing.exit_code == Exit.NOT_FOUND
