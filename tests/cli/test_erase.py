from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run, fill


@pytest.fixture
def place(tmp_path: Path) -> Path:
    fill(tmp_path / "store", retain=False)
    with bootstrap.open(str(tmp_path / "store")) as service:
        service.subjects.declare("WF-1", "ann@example.com")
        service.subjects.declare("WF-2", "ann@example.com")
        service.subjects.declare("WF-2", "bob")
    return tmp_path / "store"


def test_a_workflow_is_erased_and_the_rest_stays(run: Run, place: Path):
    done = run("erase", "--workflow", "WF-1", "--reason", "request 17", "--yes", "--store", place)
    assert done.exit_code == 0
    assert done.out.startswith("Erased: 1 workflow, ")
    assert run("show", "WF-1", "--store", place).exit_code == Exit.NOT_FOUND
    assert run("show", "WF-2", "--store", place).exit_code == 0
    assert run("audit", "verify", "--store", place).exit_code == 0


def test_a_person_is_erased_and_what_is_shared_is_told(run: Run, place: Path):
    done = run("erase", "--subject", "ann@example.com", "--reason", "r", "--yes", "--store", place)
    assert done.exit_code == 0
    assert "left: WF-2 is about others too" in done.err
    again = run("erase", "--subject", "ann@example.com", "--reason", "r", "--yes", "--json", "--store", place)
    assert again.exit_code == Exit.NOT_FOUND
    assert "ann" not in again.err


def test_programs_are_told_what_was_done(run: Run, place: Path):
    done = run("erase", "--workflow", "WF-1", "--reason", "r", "--yes", "--json", "--store", place).data
    assert (done["workflows"], done["payloads"]) == (["WF-1"], 1)


def test_without_yes_and_without_a_terminal_it_is_refused(run: Run, place: Path):
    result = run("erase", "--workflow", "WF-1", "--reason", "r", "--store", place)
    assert result.exit_code == Exit.REFUSED
    assert "to erase WF-1 for ever needs --yes" in result.err
    assert run("show", "WF-1", "--store", place).exit_code == 0


def test_what_to_erase_must_be_said_once(run: Run, place: Path):
    assert run("erase", "--reason", "r", "--store", place).exit_code == Exit.USAGE
    both = ("erase", "--workflow", "WF-1", "--subject", "ann", "--reason", "r", "--store", place)
    assert run(*both).exit_code == Exit.USAGE
    assert run("erase", "--workflow", "WF-1", "--store", place).exit_code == Exit.USAGE
    assert run("erase", "--workflow", "WF-9", "--reason", "r", "--yes", "--store", place).exit_code == 4


def test_a_dry_run_tells_what_would_go_and_what_a_hold_keeps(run: Run, store: Path):
    run("subject", "declare", "WF-1", "ann", "--store", store)
    args = ("erase", "--subject", "ann", "--reason", "asked for", "--dry-run", "--store", store)
    assert run(*args, "--json").data == {"dry_run": True, "workflows": ["WF-1"], "kept_workflows": []}
    assert run(*args).out == "Would erase 1 workflow: WF-1\n"
    assert run("show", "WF-1", "--store", store).exit_code == 0
    run("hold", "place", "--workflow", "WF-2", "--reason", "case 17", "--store", store)
    held = run("erase", "--workflow", "WF-2", "--reason", "asked for", "--dry-run", "--store", store)
    assert held.exit_code == Exit.REFUSED


def test_a_dry_run_for_somebody_nobody_spoke_of_finds_nothing(run: Run, place: Path):
    asked = ("erase", "--subject", "nobody@example.com", "--reason", "r", "--dry-run")
    with bootstrap.open("other") as service:
        service.create_checkpoint("WF-1", {"n": 1})
    for store in ("other", place):
        assert run(*asked, "--store", store).exit_code == Exit.NOT_FOUND
