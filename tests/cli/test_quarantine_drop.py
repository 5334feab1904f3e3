from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, damage_record


@pytest.fixture
def name(run: Run, store: Path) -> str:
    damage_record(store, 2)
    [name] = run("validate", "--quarantine", "--json", "--store", store).data["quarantined"]
    return name


def test_nothing_goes_without_a_yes(run: Run, store: Path, name: str):
    assert run("quarantine", "drop", name, "--reason", "r", "--store", store).exit_code == Exit.REFUSED
    assert run("quarantine", "show", name, "--store", store).exit_code == 0


def test_evidence_goes_and_the_checkpoint_stays_unusable(run: Run, store: Path, name: str):
    result = run("quarantine", "drop", name, "--reason", "case closed", "--yes", "--store", store)
    assert result.out == "Dropped the evidence of WF-1@2\n"
    assert run("quarantine", "show", name, "--store", store).exit_code == Exit.NOT_FOUND
    assert run("show", "WF-1@2", "--state", "--store", store).exit_code == Exit.CORRUPT
    assert not [path for path in (store / "quarantine").rglob("*") if path.is_file()]


def test_programs_are_told_what_went(run: Run, store: Path, name: str):
    told = run("quarantine", "drop", name, "--reason", "over", "--yes", "--json", "--store", store).data
    assert (told["name"], told["place"]) == (name, "WF-1@2")


def test_a_legal_hold_is_stronger(run: Run, store: Path, name: str):
    run("hold", "place", "--workflow", "WF-1", "--reason", "a case", "--store", store)
    result = run("quarantine", "drop", name, "--reason", "r", "--yes", "--json", "--store", store)
    assert result.exit_code == Exit.REFUSED


def test_what_is_not_there_cannot_be_dropped(run: Run, store: Path):
    result = run("quarantine", "drop", "x", "--reason", "r", "--yes", "--json", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND


def test_a_dry_run_drops_nothing(run: Run, store: Path, name: str):
    told = run("quarantine", "drop", name, "--reason", "over", "--dry-run", "--store", store)
    assert told.out == "Would drop the evidence of WF-1@2\n"
    assert run("quarantine", "show", name, "--store", store).exit_code == 0
