from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, fill


@pytest.fixture
def place(tmp_path: Path) -> Path:
    fill(tmp_path / "held", retain=False)
    return tmp_path / "held"


def test_what_is_held_is_not_removed_and_the_refusal_says_why(run: Run, place: Path):
    run("hold", "place", "--workflow", "WF-1", "--reason", "case 17", "--store", place)
    erase = run("erase", "--workflow", "WF-1", "--reason", "r", "--yes", "--store", place)
    assert erase.exit_code == Exit.REFUSED
    assert "case 17" in erase.err
    prune = ("prune", "WF-1", "--keep-last", "2", "--keep-days", "0", "--yes", "--json", "--store", place)
    assert run(*prune).error["code"] == "legal_hold"


def test_a_hold_covers_one_thing_only(run: Run, place: Path):
    both = ("hold", "place", "--workflow", "WF-1", "--subject", "ann", "--reason", "r", "--store", place)
    assert run(*both).exit_code == Exit.USAGE
    unknown = run("hold", "place", "--workflow", "WF-9", "--reason", "r", "--store", place)
    assert unknown.exit_code == Exit.NOT_FOUND
    assert "on subject " in run("hold", "place", "--subject", "ann", "--reason", "r", "--store", place).out
    assert "the whole store" in run("hold", "place", "--reason", "r", "--store", place).out
