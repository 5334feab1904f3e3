from __future__ import annotations

import json
from pathlib import Path

from holdfast import bootstrap
from holdfast.application.insight.runs import RunState
from holdfast.cli import listing
from holdfast.cli.exits import Exit
from holdfast.cli.listing import time_text
from holdfast.domain.checkpoint import CheckpointStatus
from holdfast.domain.run_events import RUN_UPDATED
from tests.cli.conftest import Result, Run


def test_workflows_are_listed_newest_first(run: Run, store: Path):
    lines = run("list", "--store", store).out.splitlines()
    assert lines[0].split() == ["WORKFLOW", "CHECKPOINTS", "NEWEST", "(UTC)", "TYPE", "STATUS", "STATE"]
    assert [line.split()[:2] for line in lines[1:]] == [["WF-2", "1"], ["WF-1", "3"]]


def test_checkpoints_are_listed_newest_first(run: Run, store: Path):
    lines = run("list", "WF-1", "--store", store).out.splitlines()
    assert [line.split()[0] for line in lines] == ["CHECKPOINT", "WF-1@3", "WF-1@2", "WF-1@1"]
    assert lines[1].endswith("work   worker-2")


def test_the_limit_is_told(run: Run, store: Path):
    result = run("list", "WF-1", "--limit", 2, "--store", store)
    assert len(result.out.splitlines()) == 3
    assert result.err.startswith("2 of 3 checkpoints; --limit 3 shows all, --cursor ")
    assert run("list", "--limit", 1, "--store", store).err.startswith("1 of 2 workflows; --limit 2 shows all")
    assert run("list", "--limit", 1, "--store", store, "--quiet").err == ""


def test_programs_get_everything_a_listing_knows(run: Run, store: Path):
    listed = run("list", "--json", "--store", store).data
    assert listed["store"] == f"file:{store}" and listed["total"] == 2
    assert [one["workflow_id"] for one in listed["workflows"]] == ["WF-2", "WF-1"]
    newest = run("list", "WF-1", "--json", "--limit", 1, "--store", store).data
    (meta,) = newest["checkpoints"]
    assert newest["total"] == 3
    assert (meta["id"], meta["sequence"], meta["parent"]) == ("WF-1@3", 3, "WF-1@2")
    assert (meta["stage_id"], meta["agent_id"], meta["type"]) == ("work", "worker-2", "agent_complete")
    assert meta["checksum"].startswith("sha256:") and meta["stored_bytes"] > 0


def test_an_empty_store_says_so(run: Run, tmp_path: Path):
    run("init", "--store", tmp_path / "new")
    result = run("list", "--store", tmp_path / "new")
    assert (result.exit_code, result.out) == (0, "")
    assert "empty" in result.err
    assert run("list", "--json", "--store", tmp_path / "new").data["workflows"] == []


def test_a_workflow_with_events_and_no_checkpoint_is_listed(run: Run, tmp_path: Path):
    with bootstrap.open(str(tmp_path / "new")) as service:
        service.append_event("WF-9", "STARTED")
    assert run("list", "--store", tmp_path / "new").out.splitlines()[1].split()[:3] == ["WF-9", "0", "-"]
    listed = run("list", "WF-9", "--store", tmp_path / "new")
    assert (listed.exit_code, len(listed.out.splitlines())) == (0, 1)
    assert run("list", "--json", "--store", tmp_path / "new").data["workflows"][0]["latest"] is None


def test_names_out_of_a_store_are_never_obeyed(run: Run, tmp_path: Path):
    with bootstrap.open(str(tmp_path / "new")) as service:
        service.create_checkpoint("wf-\u202egnp", {"a": 1}, stage_id="s", agent_id="a\u200bb")
    result = run("list", "--store", tmp_path / "new")
    assert "wf-\\u202egnp" in result.out and "\u202e" not in result.out


def test_times_are_shown_to_the_second():
    assert time_text("2026-01-11T14:30:00.000000Z") == "2026-01-11 14:30:00"


def test_a_tree_takes_no_filters(run: Run, store: Path):
    assert run("list", "--tree", "--status", "failed", "--store", store).exit_code == Exit.USAGE


def test_tables_are_csv_and_json_lines_on_demand(run: Run, store: Path, monkeypatch):
    lines = run("list", "WF-1", "-o", "csv", "--columns", "checkpoint,agent", "--store", store).out
    assert lines == "checkpoint,agent\nWF-1@3,worker-2\nWF-1@2,worker-1\nWF-1@1,-\n"
    monkeypatch.setenv("HOLDFAST_OUTPUT", "jsonl")
    told = run("list", "--columns", "workflow", "--store", store).out
    assert told == '{"workflow": "WF-2"}\n{"workflow": "WF-1"}\n'
    newest = json.loads(run("list", "--limit", "1", "--store", store).out.splitlines()[0])
    assert newest["checkpoints"] == 1 and type(newest["state"]) is int and newest["newest"].endswith("Z")
    assert run("list", "-o", "table", "--store", store).out.startswith("WORKFLOW")
    assert run("list", "--json", "--store", store).data["total"] == 2
    assert run("list", "nothing", "--store", store).error["code"] == "checkpoint_not_found"
    assert run("list", "--columns", "nothing", "--store", store).exit_code == Exit.USAGE


def test_workflows_are_told_and_sought_by_how_their_runs_stand(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.append_event("WF-1", RUN_UPDATED, {"fields": {"status": "waiting"}})
        service.append_event("WF-9", "STARTED")
    listed = run("list", "--json", "--store", store).data["workflows"]
    found = {one["workflow_id"]: (one["status"], one["reason"]) for one in listed}
    assert found["WF-1"] == ("waiting", "a question is open")
    assert found["WF-9"] == ("empty", "it has no checkpoint")
    chosen = run("list", "--status", "waiting", "--json", "--store", store).data
    assert [one["workflow_id"] for one in chosen["workflows"]] == ["WF-1"] and chosen["total"] == 1
    assert "waiting" in run("list", "--store", store).out
    # What a checkpoint says of itself is asked for as before.
    assert run("list", "--status", "active", "--json", "--store", store).data["total"] >= 1


def test_a_workflow_that_is_damaged_is_not_told_as_failed(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.acquire_lease("WF-1", "worker-1")
    [lease] = store.glob("leases/*/wf-1*/lease.json")
    lease.write_text("{")
    result = run("list", "--store", store)
    [row] = [line.split() for line in result.out.splitlines() if line.startswith("WF-1")]
    assert row[1] == "3" and "unreadable" in row and "failed" not in result.out
    assert "warning: WF-1: it cannot be read: the lease file is damaged" in result.err
    assert "`holdfast doctor`" in result.err and "WF-2:" not in result.err
    chosen = run("list", "--status", "unreadable", "--json", "--store", store)
    assert [one["workflow_id"] for one in chosen.data["workflows"]] == ["WF-1"]
    assert "warning: WF-1:" in chosen.err


def test_of_a_damaged_journal_the_checkpoints_are_counted_all_the_same(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.append_event("WF-1", RUN_UPDATED, {"fields": {"status": "completed"}})
    [journal] = store.glob("events/*/wf-1*/*.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b'"fields"', b'"fields\x00'))
    [row] = [line.split() for line in run("list", "--store", store).out.splitlines() if "WF-1" in line]
    assert row[1] == "3" and "unreadable" in row


def test_a_cancelled_workflow_is_told_as_cancelled(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.append_event("WF-1", RUN_UPDATED, {"fields": {"status": "cancelled"}})
    chosen = run("list", "--status", "cancelled", "--json", "--store", store).data
    assert [one["workflow_id"] for one in chosen["workflows"]] == ["WF-1"]
    assert run("list", "--status", "failed", "--json", "--store", store).data["total"] == 0


def test_a_status_that_nothing_has_is_a_mistake(run: Run, store: Path):
    refused = run("list", "--status", "waitng", "--store", store)
    assert refused.exit_code == Exit.USAGE and "running, waiting" in refused.err
    of_checkpoints = run("list", "WF-1", "--status", "waiting", "--store", store)
    assert of_checkpoints.exit_code == Exit.USAGE and "active, completed" in of_checkpoints.err


def test_the_statuses_are_those_of_runs_and_checkpoints():
    assert set(listing._RUN_STATES) == set(RunState)
    assert set(listing._CHECKPOINT_STATES) == set(CheckpointStatus)


def _names(told: Result) -> list[str]:
    return [one["workflow_id"] for one in told.data["workflows"]]


def test_a_branch_is_a_workflow_and_what_was_forked_from_it(run: Run, store: Path):
    for origin, new in (("WF-1@2", "F-1"), ("F-1", "F-2"), ("WF-1@1", "G-1"), ("WF-2", "H-1")):
        run("fork", origin, new, "--store", store)
    listed = ("list", "--store", store, "--json", "--sort", "name", "--branch")
    assert _names(run(*listed, "WF-1")) == ["F-1", "F-2", "G-1", "WF-1"]
    assert _names(run(*listed, "F-1")) == ["F-1", "F-2"]
    assert _names(run(*listed, "H-1")) == ["H-1"]
    page = run(*listed, "WF-1", "--limit", 3)
    assert page.data["total"] == 4
    assert _names(run(*listed, "WF-1", "--limit", 3, "--cursor", page.data["next_cursor"])) == ["WF-1"]


def test_a_branch_goes_with_filters_and_as_a_tree(run: Run, store: Path):
    for origin, new in (("WF-1@2", "F-1"), ("F-1", "F-2")):
        run("fork", origin, new, "--store", store)
    with bootstrap.open(str(store)) as service:
        service.create_checkpoint("F-2", {"n": 1}, type="workflow_complete")
        service.create_checkpoint("WF-2", {"n": 1}, type="workflow_complete")
    done = run("list", "--branch", "WF-1", "--status", "completed", "--store", store, "--json")
    assert _names(done) == ["F-2"]
    tree = run("list", "--branch", "F-1", "--tree", "--store", store).out
    assert tree == "F-1 from WF-1@2: 1 checkpoint\n`- F-2 from F-1@1: 2 checkpoints\n"


def test_a_branch_that_is_not_there_is_not_found_and_one_with_a_workflow_is_wrong_usage(
    run: Run, store: Path
):
    missing = run("list", "--branch", "WF-3", "--store", store)
    assert missing.exit_code == Exit.NOT_FOUND and "Did you mean WF-" in missing.err
    assert run("list", "WF-1", "--branch", "WF-1", "--store", store).exit_code == Exit.USAGE
