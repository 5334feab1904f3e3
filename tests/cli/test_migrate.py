from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run

PROGRAM = """
from holdfast import App

app = App(schema_version="1.2.0")

@app.migration("1.0.0", "1.1.0")
def split(fields):
    fields["context"]["steps"] = fields["context"].pop("plan").split(", ")
    return fields

@app.migration("1.1.0", "1.2.0")
def count(fields):
    fields["context"]["count"] = len(fields["context"]["steps"])
    return fields
"""


@pytest.fixture
def store(run: Run, tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "reef_flows.py").write_text(PROGRAM)
    with holdfast.open(str(tmp_path / "store")) as service:
        service.create_checkpoint("WF-1", {"plan": "ask, decide"})
        service.create_checkpoint("WF-1", {"plan": "ask, decide, act"})
        service.create_checkpoint("WF-2", {"plan": "ask"})
        service.append_event("events-only", "SAID")
    yield tmp_path / "store"
    sys.modules.pop("reef_flows", None)
    sys.path[:] = [path for path in sys.path if path != str(tmp_path)]


def sequences(store: Path) -> dict[str, int]:
    with holdfast.open(str(store), read_only=True) as service:
        return {name: service.list_checkpoints(name)[0].id.sequence for name in ("WF-1", "WF-2")}


def test_a_dry_run_tries_everything_and_changes_nothing(run: Run, store: Path):
    result = run("migrate", "--dry-run", "--app", "reef_flows:app", "--store", store)
    assert result.exit_code == 0
    assert result.out.splitlines()[0].split() == ["WORKFLOW", "NEWEST", "FROM", "TO", "STEPS", "RESULT"]
    assert result.out.splitlines()[1].split() == ["WF-1", "2", "1.0.0", "1.2.0", "2", "ready"]
    assert "Nothing was changed" in result.err
    assert sequences(store) == {"WF-1": 2, "WF-2": 1}


def test_applying_records_the_migrated_states(run: Run, store: Path):
    result = run("migrate", "--apply", "--app", "reef_flows:app", "--store", store)
    assert result.exit_code == 0
    assert result.out.splitlines()[1].split() == ["WF-1", "2", "1.0.0", "1.2.0", "2", "checkpoint", "3"]
    assert sequences(store) == {"WF-1": 3, "WF-2": 2}
    shown = run("show", "WF-1", "--json", "--state", "--store", store)
    assert '"count":3' in shown.out.replace(" ", "")
    told = run("audit", "log", "--type", "SCHEMA_MIGRATED", "--json", "--store", store)
    assert len(told.out.splitlines()) == 2
    again = run("migrate", "--apply", "--app", "reef_flows:app", "--store", store)
    assert again.exit_code == 0 and again.out == "" and "2 workflows of version 1.2.0 already" in again.err


def test_the_result_for_programs(run: Run, store: Path):
    result = run("migrate", "WF-2", "--apply", "--app", "reef_flows:app", "--store", store, "--json")
    assert result.data == {
        "dry_run": False,
        "workflows": [
            {
                "workflow_id": "WF-2",
                "outcome": "migrated",
                "source": "1.0.0",
                "target": "1.2.0",
                "steps": ["1.0.0 -> 1.1.0", "1.1.0 -> 1.2.0"],
                "checkpoint_used": "WF-2@1",
                "checkpoint": "WF-2@2",
                "error": None,
            }
        ],
        "current": 0,
        "ready": 0,
        "migrated": 1,
        "failed": 0,
        "backup": None,
    }
    assert sequences(store) == {"WF-1": 2, "WF-2": 2}


def test_a_workflow_that_fails_is_named_and_the_others_are_migrated(run: Run, store: Path):
    with holdfast.open(str(store)) as service:
        service.create_checkpoint("WF-2", {"no_plan": 1})
    result = run("migrate", "--apply", "--app", "reef_flows:app", "--store", store)
    assert result.exit_code == Exit.PARTIAL
    assert "failed: WF-2: the migration 1.0.0 -> 1.1.0 failed (KeyError: 'plan')" in result.err
    assert sequences(store) == {"WF-1": 3, "WF-2": 2}


def test_if_all_fail_it_ends_with_their_error(run: Run, store: Path):
    with holdfast.open(str(store)) as service:
        for name in ("WF-1", "WF-2"):
            service.create_checkpoint(name, {"no_plan": 1})
    result = run("migrate", "--dry-run", "--app", "reef_flows:app", "--store", store, "--json")
    assert result.exit_code == Exit.OTHER_FORMAT
    assert result.data["failed"] == 2
    assert result.data["workflows"][0]["error"]["code"] == "migration_failed"
    one = run("migrate", "WF-1", "--dry-run", "--app", "reef_flows:app", "--store", store, "--json")
    assert one.exit_code == Exit.OTHER_FORMAT and one.error["code"] == "migration_failed"


def test_where_nothing_is_to_be_done_nothing_is_proposed(run: Run, store: Path):
    result = run("migrate", "--dry-run", "--store", store)
    assert "No app was named, so the version is 1.0.0" in result.err
    assert "Nothing was changed." in result.err and "--apply" not in result.err


def test_without_an_app_newer_states_are_refused_with_what_to_do(run: Run, store: Path):
    run("migrate", "--apply", "--app", "reef_flows:app", "--store", store)
    result = run("migrate", "WF-1", "--dry-run", "--store", store)
    assert result.exit_code == Exit.OTHER_FORMAT
    assert "version 1.2.0" in result.err and "--app" in result.err


def test_a_state_that_is_newer_than_the_version_asked_for_is_told_so(run: Run, store: Path):
    known = ("--app", "reef_flows:app", "--store", store)
    run("migrate", "--apply", *known)
    result = run("migrate", "WF-1", "--dry-run", "--to", "1.1.0", *known)
    assert result.exit_code == Exit.OTHER_FORMAT
    assert "1.2.0, which is newer than the version asked for, 1.1.0" in result.err
    assert "Use the program" not in result.err


def test_the_app_may_be_named_in_the_configuration(run: Run, store: Path):
    Path("holdfast.toml").write_text('app = "reef_flows:app"\n')
    result = run("migrate", "--dry-run", "--store", store, "--json")
    assert result.data["ready"] == 2


@pytest.mark.parametrize("flags", [(), ("--dry-run", "--apply")])
def test_either_a_dry_run_or_the_real_one_has_to_be_asked_for(run: Run, store: Path, flags: tuple[str, ...]):
    result = run("migrate", *flags, "--store", store)
    assert result.exit_code == Exit.USAGE and "either --dry-run or --apply" in result.err


def test_a_workflow_that_is_not_there_gets_a_suggestion(run: Run, store: Path):
    result = run("migrate", "WF-3", "--dry-run", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "Did you mean WF-" in result.err


@pytest.mark.parametrize("mode", ["--dry-run", "--apply"])
def test_an_erased_workflow_is_left_out_and_the_others_are_migrated(run: Run, store: Path, mode: str):
    erased = run("erase", "--workflow", "WF-1", "--reason", "asked for", "--yes", "--store", store)
    assert erased.exit_code == 0
    result = run("migrate", mode, "--app", "reef_flows:app", "--store", store, "--json")
    assert result.exit_code == 0
    outcome = "ready" if mode == "--dry-run" else "migrated"
    assert [(one["workflow_id"], one["outcome"]) for one in result.data["workflows"]] == [("WF-2", outcome)]


def test_a_chosen_workflow_without_a_checkpoint_is_refused_before_the_first_is_changed(run: Run, store: Path):
    chosen = ("WF-1", "events-only", "WF-2")
    result = run("migrate", *chosen, "--apply", "--app", "reef_flows:app", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "at: events-only" in result.err
    assert sequences(store) == {"WF-1": 2, "WF-2": 1}


def test_an_empty_store_has_nothing_to_migrate(run: Run, tmp_path: Path):
    holdfast.open(str(tmp_path / "empty")).close()
    result = run("migrate", "--apply", "--store", tmp_path / "empty")
    assert result.exit_code == 0 and "no workflow" in result.err


KILLED = """
import os, signal
from holdfast import App

app = App(schema_version="1.2.0")
calls = []

@app.migration("1.0.0", "1.2.0")
def kill(fields):
    calls.append(1)
    if len(calls) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    steps = fields["context"].pop("plan").split(", ")
    fields["context"] |= {"steps": steps, "count": len(steps)}
    return fields
"""


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_what_was_killed_half_way_is_finished_by_the_next_call(run: Run, store: Path, kind: str):
    place = store if kind == "file" else f"sqlite:{store.with_name('store.db')}"
    if kind == "sqlite":
        assert run("copy", store, place).exit_code == 0
    store.with_name("killed_flows.py").write_text(KILLED)
    command = [sys.executable, "-m", "holdfast", "migrate", "--apply", "--app", "killed_flows:app"]
    killed = subprocess.run([*command, "--store", str(place)], check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL
    result = run("migrate", "--apply", "--app", "reef_flows:app", "--store", place, "--json")
    assert {one["workflow_id"]: one["outcome"] for one in result.data["workflows"]} == {
        "WF-1": "current",
        "WF-2": "migrated",
    }
    assert run("validate", "--store", place).exit_code == 0


def test_on_a_terminal_a_bar_shows_how_far_it_is(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("holdfast.cli.bars.PATIENCE_SECONDS", 0)
    result = run("migrate", "--dry-run", "--app", "reef_flows:app", "--store", store)
    assert result.exit_code == 0
    assert "migrate" in result.err


def test_states_are_brought_to_an_earlier_version_that_all_programs_know(run: Run, store: Path):
    going = ("migrate", "--to", "1.1.0", "--app", "reef_flows:app", "--store", store, "--json")
    planned = run(*going, "--dry-run").data
    assert [one["target"] for one in planned["workflows"]] == ["1.1.0", "1.1.0"]
    assert run(*going, "--apply").data["migrated"] == 2
    assert run(*going, "--apply").data["current"] == 2
    with holdfast.open(str(store), read_only=True) as service:
        assert {service.list_checkpoints(name)[0].schema_version for name in ("WF-1", "WF-2")} == {"1.1.0"}
    rest = run("migrate", "WF-1", "--apply", "--app", "reef_flows:app", "--store", store, "--json").data
    assert rest["workflows"][0]["steps"] == ["1.1.0 -> 1.2.0"]
    back = run("migrate", "WF-1", *going[1:], "--apply")
    assert back.exit_code == Exit.OTHER_FORMAT and sequences(store)["WF-1"] == 4


@pytest.mark.parametrize(("version", "leave"), [("2", Exit.USAGE), ("1.3.0", Exit.OTHER_FORMAT)])
def test_a_version_that_the_program_does_not_know_is_refused(
    run: Run, store: Path, version: str, leave: Exit
):
    result = run("migrate", "--apply", "--to", version, "--app", "reef_flows:app", "--store", store)
    assert result.exit_code == leave and sequences(store) == {"WF-1": 2, "WF-2": 1}


def test_a_backup_is_written_first_and_holds_what_was(run: Run, store: Path):
    going = ("migrate", "--app", "reef_flows:app", "--store", store, "--backup", "before.holdfast")
    assert run(*going, "--dry-run").exit_code == 0 and not Path("before.holdfast").exists()
    told = run(*going, "--apply", "--json").data
    assert told["backup"] == "before.holdfast" and told["migrated"] == 2
    kept = run("--store", "sqlite:before.holdfast", "show", "WF-1", "--state", "--json")
    assert kept.exit_code == 0 and "ask, decide, act" in kept.out
    assert run("import", "archive", "before.holdfast", "--store", "other").exit_code == 0


def test_without_its_backup_nothing_is_migrated(run: Run, store: Path):
    going = ("migrate", "--apply", "--app", "reef_flows:app", "--store", store, "--backup")
    Path("mine").write_text("mine")
    assert run(*going, "mine").exit_code == Exit.REFUSED
    assert run(*going, "no/such/folder").exit_code == Exit.USAGE
    for record in store.glob("checkpoints/**/*.json*"):
        record.write_bytes(record.read_bytes().replace(b"ask", b"axk"))
    assert run(*going, "half").exit_code == Exit.CORRUPT
    assert not Path("half").exists() and Path("mine").read_text() == "mine"
