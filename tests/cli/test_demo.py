from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.cli.demo_team import NOTES, STEPS
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run


@pytest.mark.sweep
def test_the_team_is_killed_twice_and_its_work_is_carried_on(run: Run, tmp_path: Path):
    place = tmp_path / "kelp"
    result = run("demo", "--store", "kelp")
    assert result.exit_code == 0, result.err
    lines = result.out.splitlines()
    assert max(map(len, lines)) <= 78
    assert sum(line.startswith("  kill -9") for line in lines) == 2
    assert "  results           3 of the 3 acknowledged" in lines
    assert "  results           8 of the 8 acknowledged" in lines
    assert "  results           9 of 9, 0 of them computed twice" in lines
    with bootstrap.open(str(place), read_only=True, create=False, audit=False) as service:
        state = service.load_latest("kelp")
        assert state is not None and (state.status, state.resumable) == ("completed", False)
        assert [task["id"] for task in state.tasks if task["agent"] != "research"] == [
            step for step in STEPS if not step.startswith("research")
        ]
        assert {task["id"]: task["result"] for task in state.tasks if task["agent"] == "research"} == {
            f"research[{topic}]": list(notes) for topic, notes in NOTES.items()
        }
    # A second demo in the same store is another workflow. Programs get its counts.
    told = run("demo", "--store", place, "--json").data
    assert told["workflow_id"] == "kelp-2"
    assert (told["kills"], told["lost"], told["completed_twice"], told["problems"]) == (2, 0, 0, 0)
    assert told["done"] and told["valid"]
    assert told["completed"] == told["steps"] == len(STEPS)
    assert told["begun_again"] == ["research[blades]", "publish"]
    assert told["posted"] == 1
    assert told["trail_entries"] > 0 == told["trail_faults"]
    assert run("validate", "--deep", "--store", place).exit_code == 0


@pytest.mark.sweep
def test_without_a_flag_nothing_is_left_and_no_store_of_ours_is_touched(
    run: Run, store: Path, monkeypatch, tmp_path
):
    monkeypatch.setenv("HOLDFAST_STORE", str(store))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = sorted(tmp_path.iterdir())
    assert run("demo", "--json").data["store"] is None
    assert sorted(tmp_path.iterdir()) == before
    assert run("list", "--json").data["total"] == 2


def test_a_store_in_memory_cannot_be_shared(run: Run):
    assert run("demo", "--store", "memory:").exit_code == Exit.USAGE


def test_a_team_that_fails_by_itself_is_told(run: Run, tmp_path: Path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    result = run("demo", "--store", tmp_path / "kelp")
    assert result.exit_code == Exit.UNEXPECTED
    assert "the team's process ended with 1" in result.err
