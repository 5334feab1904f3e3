"""`holdfast cancel`: a run ends for good, now or as soon as somebody runs it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run
from tests.cli.running import called, running, write_program


def test_a_run_is_cancelled_while_an_agent_is_at_work(tmp_path: Path) -> None:
    program = write_program(tmp_path)
    os.mkfifo(tmp_path / "gate")
    with running(tmp_path, "run", f"{program}:gated", "--id", "W") as process:
        process.until("agent_started", step_id="work")
        cancelled = called(tmp_path, "cancel", "W", "--reason", "withdrawn", "--yes", "--json")
        assert (cancelled.returncode, json.loads(cancelled.stdout)["status"]) == (Exit.DONE, "cancelling")
        exit_code, result = process.ended()
    assert (exit_code, result["status"], result["resume"]) == (Exit.CANCELLED, "cancelled", None)
    again = called(tmp_path, "resume", "W", "--app", f"{program}:gated")
    assert again.returncode == Exit.CANCELLED
    assert "W cancelled before; nothing was run" in again.stdout


def test_a_run_that_is_about_to_pause_can_still_be_cancelled(tmp_path: Path) -> None:
    program = write_program(tmp_path)
    os.mkfifo(tmp_path / "gate")
    with running(tmp_path, "run", f"{program}:gated", "--id", "W") as process:
        process.until("agent_started", step_id="work")
        assert called(tmp_path, "pause", "W").returncode == Exit.DONE
        assert called(tmp_path, "cancel", "W", "--yes").returncode == Exit.DONE
        assert process.ended()[0] == Exit.CANCELLED


def test_a_workflow_that_nobody_runs_is_cancelled_as_soon_as_somebody_does(run: Run, tmp_path: Path) -> None:
    program = f"{write_program(tmp_path)}:panel"
    assert run("run", program, "--id", "W", "--no-wait").exit_code == Exit.WAITING
    asked = run("cancel", "W", "--yes")
    assert asked.exit_code == Exit.WAITING
    assert asked.out == "Nobody runs W: it is cancelled as soon as somebody does\n"
    ended = run("resume", "W", "--app", program)
    assert ended.exit_code == Exit.CANCELLED and ended.out.startswith("W cancelled in ")
    assert run("resume", "W", "--app", program).out.startswith("W cancelled before; nothing was run")
    [row] = run("list", "--json").data["workflows"]
    assert (row["status"], row["reason"]) == ("cancelled", "it was cancelled")
    over = run("cancel", "W", "--yes", "--json")
    assert (over.exit_code, over.error["code"]) == (Exit.REFUSED, "workflow_ended")


def test_it_needs_a_yes(run: Run, tmp_path: Path) -> None:
    program = f"{write_program(tmp_path)}:panel"
    run("run", program, "--id", "W", "--no-wait")
    result = run("cancel", "W")
    assert result.exit_code == Exit.REFUSED and "needs --yes" in result.err
    assert not list(Path(".holdfast/requests").glob("**/*.json"))


def test_a_workflow_that_is_not_there_is_told(run: Run, store: Path) -> None:
    assert run("cancel", "WF-9", "--yes", "--store", store).exit_code == Exit.NOT_FOUND
