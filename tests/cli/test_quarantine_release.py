from __future__ import annotations

from pathlib import Path

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, damage_record


def test_what_is_not_there_cannot_be_released(run: Run, store: Path):
    assert run("quarantine", "release", "x", "--reason", "r", "--store", store).exit_code == Exit.NOT_FOUND


def test_a_reason_is_needed(run: Run, store: Path):
    assert run("quarantine", "release", "x", "--store", store).exit_code == Exit.USAGE


def test_what_still_does_not_verify_stays(run: Run, store: Path):
    damage_record(store, 2)
    [name] = run("validate", "--quarantine", "--json", "--store", store).data["quarantined"]
    refused = run("quarantine", "release", name, "--reason", "hope", "--json", "--store", store)
    assert (refused.exit_code, refused.error["code"]) == (Exit.CORRUPT, "checkpoint_quarantined")
    assert run("quarantine", "list", "--json", "--store", store).data["quarantined"][0]["released"] is None


def test_programs_are_told_what_was_released(run: Run, store: Path):
    with bootstrap.open(str(store), background=False) as service:
        name = service.quarantine.put("WF-1", 2, "a drill").name
    told = run("quarantine", "release", name, "--reason", "it was one", "--json", "--store", store).data
    assert told["status"] == "released" and told["released"]["reason"] == "it was one"


def test_a_dry_run_releases_nothing(run: Run, store: Path):
    with bootstrap.open(str(store), background=False) as service:
        name = service.quarantine.put("WF-1", 2, "a drill").name
    told = run("quarantine", "release", name, "--reason", "it was one", "--dry-run", "--store", store)
    assert told.out == "Would release WF-1@2 if it verifies again\n"
    assert run("quarantine", "show", name, "--json", "--store", store).exit_code == 0
    assert run("show", "WF-1@2", "--store", store).exit_code == Exit.CORRUPT
