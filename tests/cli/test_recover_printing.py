"""A plan and its outcome tell the same things, in words and to programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run
from tests.cli.running import write_program


@pytest.fixture
def failed(run: Run, tmp_path: Path) -> str:
    """A run that failed at its second agent; answers the program."""
    program = f"{write_program(tmp_path)}:failing"
    assert run("run", program, "--id", "W").exit_code == Exit.RUN_FAILED
    return program


def test_a_fork_is_planned_and_told(run: Run, failed: str) -> None:
    planned = run("recover", "W", "--fork", "V", "--skip-agent", "last", "--plan")
    assert planned.exit_code == Exit.DONE and "W would be recovered into V from checkpoint" in planned.out
    assert "  skip     last would be skipped" in planned.out
    told = run("recover", "W", "--fork", "V", "--skip-agent", "last", "--plan", "--json").data
    assert (told["fork"], told["skipped_steps"], told["exec"]) == ("V", ["last"], None)
    result = run("recover", "W", "--fork", "V", "--skip-agent", "last")
    assert result.exit_code == Exit.DONE and "Recovered V from checkpoint 1" in result.out
    assert f"  fork of  {told['forked_from']}, which is left as it is" in result.out
    assert "  skip     last is skipped" in result.out


def test_programs_are_told_the_same(run: Run, failed: str) -> None:
    planned = run("recover", "W", "--fork", "V", "--plan", "--json").data
    told = run("recover", "W", "--fork", "V", "--json").data
    assert (told["workflow_id"], told["forked_from"]) == ("V", planned["forked_from"])
    plain = run("recover", "W", "--json").data
    assert (plain["workflow_id"], plain["forked_from"], plain["skipped_steps"]) == ("W", None, [])
