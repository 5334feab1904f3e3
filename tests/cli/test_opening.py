"""Stores that are missing, closed to us, read-only or of another kind; names that are nearly right."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.application.audit.audit_query import AuditQuery
from holdfast.cli.exits import Exit
from holdfast.cli.opening import session_name, store_above
from holdfast.domain.state import WorkflowState
from holdfast.domain.trail import decode_entry
from tests.cli.conftest import Run, damage_record, fill, without_privileges

READING = [("list",), ("show", "WF-1"), ("diff", "WF-1"), ("validate",), ("prune", "--dry-run"), ("doctor",)]
#: Those who show states, which is told in the trail.
TOLD = {"show", "diff", "validate"}


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_a_missing_store_ends_with_10(run: Run, args):
    result = run(*args, "--store", "nowhere", "--json")
    assert result.exit_code == Exit.NO_STORE
    assert result.error["code"] == "store_not_found"
    assert result.error["place"].endswith("/nowhere") and "holdfast init" in result.error["hint"]
    assert not Path("nowhere").exists()


@pytest.mark.parametrize("url", ["nowhere", "file:nowhere", "sqlite:nowhere"])
def test_who_named_a_place_without_a_store_is_told(run: Run, monkeypatch, url):
    Path("holdfast.toml").write_text(f'store = "{url}"\n')
    assert "store in holdfast.toml names this place." in run("list").err
    monkeypatch.setenv("HOLDFAST_STORE", url)
    result = run("list")
    assert result.exit_code == Exit.NO_STORE
    assert "HOLDFAST_STORE names this place." in result.err and "holdfast init" in result.err
    assert "HOLDFAST_STORE" not in run("list", "--store", "elsewhere").err


def test_a_store_in_the_folder_that_was_named_is_told(run: Run, tmp_path: Path):
    fill(tmp_path / "project" / ".holdfast")
    result = run("list", "--store", tmp_path / "project")
    assert result.exit_code == Exit.NO_STORE
    assert f"There is one in it: {tmp_path / 'project' / '.holdfast'}." in result.err


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_a_store_of_a_newer_format_ends_with_40(run: Run, store: Path, args):
    settings = store / "holdfast.json"
    settings.write_text(settings.read_text().replace('"version": 1', '"version": 99'))
    assert run(*args, "--store", store).exit_code == Exit.OTHER_FORMAT


def test_an_unknown_kind_of_store_is_wrong_usage(run: Run):
    result = run("list", "--store", "carrier+pigeon:home")
    assert result.exit_code == Exit.USAGE
    assert "carrier+pigeon" in result.err


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_a_copy_that_we_may_only_read_is_read(run: Run, public_folder: Path, monkeypatch, args):
    place = public_folder / "store"
    fill(place)
    monkeypatch.chdir(public_folder)
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    # Loads every module while we may still read them all.
    run(*args, "--store", place)
    before = snapshot(place)
    with without_privileges():
        result = run(*args, "--store", place)
    assert result.exit_code == Exit.DONE, result.err
    assert snapshot(place) == before
    warned = "warning: this read is not in the trail" in result.err
    assert warned == (args[0] in TOLD) and result.err.count("warning") == warned


def snapshot(place: Path) -> dict[str, tuple[int, bytes | None]]:
    """Names, modes and bytes of everything in a store."""
    return {
        str(path): (stat.S_IMODE(path.stat().st_mode), None if path.is_dir() else path.read_bytes())
        for path in (place, *place.rglob("*"))
    }


@pytest.mark.parametrize("args", READING, ids=lambda args: args[0])
def test_a_store_that_we_may_not_enter_ends_with_13(run: Run, public_folder: Path, monkeypatch, args):
    place = public_folder / "store"
    fill(place)
    monkeypatch.chdir(public_folder)
    run(*args, "--store", place)
    mode = 0o700 if os.geteuid() == 0 else 0
    place.chmod(mode)
    try:
        with without_privileges():
            result = run(*args, "--store", place)
    finally:
        place.chmod(0o700)
    assert result.exit_code == Exit.UNREACHABLE
    assert "Permission denied" in result.err and "Traceback" not in result.err


def test_reading_takes_no_lock_and_what_shows_no_state_leaves_no_trace(run: Run, store: Path):
    before = snapshot(store)
    for args in READING:
        if args[0] not in TOLD:
            assert run(*args, "--store", store).exit_code == 0
    assert snapshot(store) == before


def told(store: Path) -> list[tuple[str, str | None, str, dict[str, int | str]]]:
    """Type, workflow, outcome and facts of what the command line told today."""
    with bootstrap.open(str(store), create=False, read_only=True) as service:
        lines = list(service.audit.find(AuditQuery(session_id=session_name())))
    entries = [decode_entry(line, None) for line in lines]
    return [(entry.type, entry.workflow_id, entry.outcome, dict(entry.facts)) for entry in entries]


def test_who_looks_at_states_is_told_of(run: Run, store: Path):
    for args in (("show", "WF-1@2", "--meta"), ("diff", "WF-1@3"), ("validate", "WF-2"), ("validate",)):
        assert run(*args, "--store", store).exit_code == 0
    entries = told(store)
    assert [entry[:3] for entry in entries] == [
        ("SESSION_STARTED", None, "success"),
        ("STATE_READ", "WF-1", "success"),
        ("STATE_READ", "WF-1", "success"),
        ("STATE_READ", "WF-1", "success"),
        ("CHECKPOINT_VALIDATED", "WF-2", "success"),
        ("CHECKPOINT_VALIDATED", None, "success"),
    ]
    assert [entry[3].get("cp_seq") for entry in entries[1:5]] == [2, 2, 3, 1]
    assert entries[5][3] == {"checkpoints": 4, "events": 0, "problems": 0}


def test_what_was_not_shown_is_not_told(run: Run, store: Path):
    assert run("show", "WF-1@9", "--store", store).exit_code == Exit.NOT_FOUND
    assert run("show", "WF-1@2", "--state=/nothing", "--store", store).exit_code == Exit.NOT_FOUND
    assert told(store) == []


def test_damage_that_was_found_is_told_as_a_failure(run: Run, store: Path):
    damage_record(store, 2)
    assert run("validate", "WF-1@2", "WF-2", "--store", store).exit_code == Exit.CORRUPT
    assert [entry[2] for entry in told(store)[1:]] == ["failure", "success"]


def test_a_trail_that_is_switched_off_hears_of_nothing(run: Run, store: Path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_AUDIT", "false")
    assert run("show", "WF-1", "--store", store).err == ""
    assert told(store) == []


@pytest.mark.parametrize("args", [args for args in READING if args[0] in TOLD], ids=lambda args: args[0])
def test_a_strict_trail_shows_nothing_that_it_cannot_tell(run: Run, public_folder: Path, monkeypatch, args):
    place = public_folder / "store"
    fill(place)
    monkeypatch.chdir(public_folder)
    monkeypatch.setenv("HOLDFAST_STRICT_AUDIT", "true")
    assert run(*args, "--store", place).exit_code == Exit.DONE
    for path in (place, *place.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with without_privileges():
        result = run(*args, "--store", place)
    assert (result.exit_code, result.out) == (Exit.UNREACHABLE, "")
    assert "the trail is strict" in result.err


def test_changes_are_told_in_the_same_session(run: Run, store: Path):
    assert run("prune", "--keep-last", 1, "--keep-days", 0, "--yes", "--store", store).exit_code == 0
    run("show", "WF-1", "--store", store)
    assert [entry[0] for entry in told(store)] == ["SESSION_STARTED", "CHECKPOINTS_PRUNED", "STATE_READ"]


def test_a_name_that_is_nearly_right_gets_a_suggestion(run: Run, store: Path):
    for args in (("list", "WF1"), ("show", "WF1@2"), ("diff", "WF1"), ("validate", "WF1"), ("prune", "WF1")):
        result = run(*args, "--store", store)
        assert result.exit_code == Exit.NOT_FOUND
        assert "Did you mean WF-1" in result.err


def test_the_wrong_case_is_nearly_right(run: Run, store: Path):
    for args in (("show", "wf-1"), ("list", "wf-1"), ("show", "wf-1@2")):
        result = run(*args, "--store", store)
        assert result.exit_code == Exit.NOT_FOUND and "Did you mean WF-1?" in result.err


def test_a_stage_or_phase_that_is_not_there_is_told_which_are(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        for phase in (1, 2, 2):
            service.create_checkpoint("WF-2", WorkflowState(phase=phase))

    def hint(name: str) -> str:
        result = run("show", name, "--store", store)
        assert result.exit_code == Exit.NOT_FOUND
        return result.err.partition(" hint: ")[2].strip()

    assert hint("WF-1@stage:plam") == "Did you mean plan? WF-1 has the stages plan, work."
    assert hint("WF-1@stage:wrk").startswith("Did you mean work? ")
    assert hint("WF-1@stage:zzz") == "WF-1 has the stages plan, work."
    assert hint("WF-2@phase:9") == "WF-2 has the phases 1, 2."
    assert hint("WF-1@phase:9") == "No checkpoint of WF-1 names a phase."


def test_a_sequence_that_is_not_there_is_told_which_are(run: Run, store: Path):
    result = run("show", "WF-1@9", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND
    assert "WF-1 has checkpoints 1 to 3." in result.err


def test_what_selects_no_checkpoint_is_told_what_does(run: Run, store: Path):
    result = run("show", "WF-1@newest", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND
    assert "WF-1 is there; a checkpoint of it is @42, @latest" in result.err and "@newest" in result.err


def test_a_uuid_that_is_not_there_is_not_found(run: Run, store: Path):
    assert run("show", "0000-0000", "--store", store).exit_code == Exit.NOT_FOUND


def test_a_name_that_can_be_none_is_wrong_usage(run: Run, store: Path):
    for name in ("..", "", "a\nb"):
        result = run("list", name, "--store", store)
        assert result.exit_code == Exit.USAGE
        assert len(result.err.splitlines()) <= 3


def test_a_store_below_a_folder_that_is_not_ours_to_enter_ends_with_13(
    run: Run, public_folder: Path, monkeypatch
):
    place = public_folder / "locked" / "store"
    fill(place)
    place.parent.chmod(0)
    monkeypatch.chdir(public_folder)
    with without_privileges():
        result = run("list", "--store", place)
    place.parent.chmod(0o700)
    assert (result.exit_code, result.out) == (Exit.UNREACHABLE, "")
    assert "Permission denied" in result.err and "defect" not in result.err


def test_the_store_above_a_file_is_found(store: Path, tmp_path: Path):
    assert store_above(str(store / "checkpoints" / "x" / "y")) == str(store)
    lone = tmp_path / "lone"
    shutil.copytree(store / "checkpoints", lone)
    assert store_above(str(lone / "checkpoint_000001.json")) is None
