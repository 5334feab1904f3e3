"""`holdfast checkpoint`: asked from outside, made by whoever runs the workflow."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run
from tests.cli.running import called, open_gate, running, write_program


@pytest.mark.parametrize("url", [".holdfast", "sqlite:own.db"])
def test_a_running_workflow_makes_a_checkpoint_when_it_is_asked(tmp_path: Path, url: str) -> None:
    program, named = write_program(tmp_path), ("--store", url)
    os.mkfifo(tmp_path / "gate")
    with running(tmp_path, "run", f"{program}:gated", "--id", "W", *named) as process:
        process.until("agent_started", step_id="work")
        asked = called(tmp_path, "checkpoint", "W", "--reason", "before the cut", "--json", *named)
        assert asked.returncode == Exit.DONE
        made = process.until("checkpoint_saved", reason="user_requested")
        assert json.loads(asked.stdout)["checkpoint"] == made["checkpoint_id"]
        again = called(tmp_path, "checkpoint", "W", *named)
        assert again.stdout.startswith("W@")
        open_gate(tmp_path)
        assert process.ended()[0] == Exit.DONE
    log = called(tmp_path, "audit", "log", "--type", "REQUEST_MADE", "--json", *named).stdout
    assert len(log.splitlines()) == 2


def test_nobody_is_asked_where_nobody_runs(run: Run, store: Path) -> None:
    result = run("checkpoint", "WF-1", "--store", store, "--json")
    assert (result.exit_code, result.error["code"]) == (Exit.REFUSED, "not_running")
    assert "holdfast resume WF-1" in result.error["hint"]
    assert not list(store.glob("requests/**/*.json"))


def test_a_workflow_that_is_not_there_is_told(run: Run, store: Path) -> None:
    assert run("checkpoint", "WF-9", "--store", store).exit_code == Exit.NOT_FOUND


def test_a_workflow_whose_triggers_leave_it_out_makes_none(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text(
        "from pathlib import Path\n"
        "from holdfast import Triggers, Workflow\n"
        "team = Workflow('deaf', triggers=Triggers(user_requested=False))\n"
        "@team.agent\n"
        "def work(ctx):\n"
        "    return Path('gate').read_text()\n"
    )
    os.mkfifo(tmp_path / "gate")
    with running(tmp_path, "run", "deaf.py:team", "--id", "W") as process:
        process.until("agent_started", step_id="work")
        asked = called(tmp_path, "checkpoint", "W", "--json")
        assert asked.returncode == Exit.PARTIAL
        assert json.loads(asked.stderr)["code"] == "not_made"
        open_gate(tmp_path)
        assert process.ended()[0] == Exit.DONE
