"""`holdfast pause`: what is at work ends, and the run goes on another day."""

from __future__ import annotations

import json
import os
from pathlib import Path

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run
from tests.cli.running import called, open_gate, running, write_program


def test_a_run_is_paused_and_gone_on_with(tmp_path: Path) -> None:
    program = write_program(tmp_path)
    os.mkfifo(tmp_path / "gate")
    with running(tmp_path, "run", f"{program}:gated", "--id", "W") as process:
        process.until("agent_started", step_id="work")
        tried = called(tmp_path, "pause", "W", "--dry-run", "--json")
        assert json.loads(tried.stdout)["request"] == "pause" and json.loads(tried.stdout)["runner"]
        paused = called(tmp_path, "pause", "W", "--reason", "the budget is used up", "--json")
        assert (paused.returncode, json.loads(paused.stdout)["status"]) == (Exit.DONE, "pausing")
        open_gate(tmp_path)
        exit_code, result = process.ended()
    assert (exit_code, result["status"], result["ran"]) == (Exit.PAUSED, "paused", 2)
    resumed = called(tmp_path, "resume", "W", "--app", f"{program}:gated", "--json")
    told = json.loads(resumed.stdout)
    assert (resumed.returncode, told["value"], told["kept"]) == (Exit.DONE, "prepared worked", 2)


def test_a_run_that_waits_for_an_answer_is_paused_at_once(tmp_path: Path) -> None:
    program = write_program(tmp_path)
    with running(tmp_path, "run", f"{program}:panel", "--id", "W") as process:
        process.until("agent_started", step_id="publish")
        assert "W pauses once" in called(tmp_path, "pause", "W").stdout
        assert process.ended()[0] == Exit.PAUSED


def test_what_nobody_runs_cannot_be_paused(run: Run, store: Path) -> None:
    result = run("pause", "WF-1", "--store", store)
    assert result.exit_code == Exit.REFUSED and "nobody runs" in result.err
    assert run("pause", "WF-9", "--store", store).exit_code == Exit.NOT_FOUND
