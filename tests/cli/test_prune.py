from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.application.service import CheckpointService
from holdfast.cli.exits import Exit
from holdfast.cli.prune import _ranges
from holdfast.domain.errors import DiskFullError
from tests.cli.conftest import Run

TWO = ("--keep-last", "2", "--keep-days", "0")


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A store with two workflows of twelve checkpoints each."""
    place = tmp_path / "long"
    with bootstrap.open(str(place), retain=False) as service:
        for workflow_id in ("WF-A", "WF-B"):
            for number in range(12):
                service.create_checkpoint(workflow_id, {"number": number})
    return place


def listed(run: Run, place: Path, workflow_id: str) -> list[int]:
    checkpoints = run("list", workflow_id, "--json", "--store", place).data["checkpoints"]
    return sorted(one["sequence"] for one in checkpoints)


def test_a_dry_run_tells_and_changes_nothing(run: Run, long: Path):
    result = run("prune", *TWO, "--dry-run", "--store", long)
    assert result.exit_code == 0
    assert [line.split()[:3] for line in result.out.splitlines()] == [
        ["WORKFLOW", "KEPT", "REMOVED"],
        ["WF-A", "2", "10"],
        ["WF-B", "2", "10"],
    ]
    assert result.out.splitlines()[1].endswith("1-10")
    assert "Nothing was changed" in result.err
    assert listed(run, long, "WF-A") == list(range(1, 13))


def test_programs_get_the_plan(run: Run, long: Path):
    plan = run("prune", "WF-A", *TWO, "--dry-run", "--json", "--store", long).data
    assert (plan["dry_run"], plan["removed"], plan["failed"]) == (True, 10, [])
    (one,) = plan["workflows"]
    assert (one["workflow_id"], one["kept"], one["removed"]) == ("WF-A", 2, list(range(1, 11)))


def test_without_yes_and_without_a_terminal_it_is_refused(run: Run, long: Path):
    result = run("prune", *TWO, "--store", long)
    assert result.exit_code == Exit.REFUSED
    assert "to remove 20 checkpoints of 2 workflows for good needs --yes" in result.err
    assert run("prune", *TWO, "--json", "--store", long).error["code"] == "refused"
    assert len(listed(run, long, "WF-A")) == 12


def test_yes_removes_and_what_stays_is_valid(run: Run, long: Path):
    result = run("prune", "WF-A", *TWO, "--yes", "--json", "--store", long)
    assert result.exit_code == 0
    assert (result.data["dry_run"], result.data["removed"]) == (False, 10)
    assert listed(run, long, "WF-A") == [11, 12]
    assert len(listed(run, long, "WF-B")) == 12
    assert run("validate", "--deep", "--store", long).exit_code == 0
    assert run("show", "WF-A@3", "--store", long).exit_code == Exit.NOT_FOUND


@pytest.mark.parametrize(("answer", "exit_code", "kept"), [("y\n", 0, 2), ("n\n", Exit.REFUSED, 12)])
def test_a_person_at_a_terminal_is_asked(run: Run, long: Path, monkeypatch, answer, exit_code, kept):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda text, **settings: answer == "y\n")
    result = run("prune", "WF-A", *TWO, "--store", long)
    assert result.exit_code == exit_code
    assert len(listed(run, long, "WF-A")) == kept


def answering(monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """Let a person say yes, once something has happened after the plan was shown."""
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda text, **settings: bool((meanwhile(), True)))


def test_what_was_answered_goes_and_nothing_that_was_committed_meanwhile(run: Run, long: Path, monkeypatch):
    def commit() -> None:
        with bootstrap.open(str(long), retain=False) as service:
            for number in range(20):
                service.create_checkpoint("WF-A", {"later": number})

    answering(monkeypatch, commit)
    result = run("prune", "WF-A", *TWO, "--store", long)
    assert result.exit_code == 0
    assert listed(run, long, "WF-A") == list(range(11, 33))
    assert result.out.splitlines()[-1].split()[:3] == ["WF-A", "22", "10"]
    assert run("validate", "--deep", "--store", long).exit_code == 0


def test_what_was_answered_and_may_not_go_any_more_is_told(run: Run, long: Path, monkeypatch):
    def pin() -> None:
        with bootstrap.open(str(long), retain=False) as service:
            service.pin("WF-A@3")

    answering(monkeypatch, pin)
    result = run("prune", "WF-A", *TWO, "--store", long)
    assert result.exit_code == Exit.LOCKED
    assert "what would go is not what was shown any more" in result.err
    assert listed(run, long, "WF-A") == list(range(1, 13))


def test_what_is_kept_is_counted_afterwards(run: Run, long: Path, monkeypatch):
    real = CheckpointService.prune_checkpoints

    def prune_late(self, workflow_id, *args, **settings):
        for number in range(20):
            self.create_checkpoint(workflow_id, {"later": number})
        return real(self, workflow_id, *args, **settings)

    monkeypatch.setattr(CheckpointService, "prune_checkpoints", prune_late)
    (one,) = run("prune", "WF-A", *TWO, "--yes", "--json", "--store", long).data["workflows"]
    assert one["kept"] == len(listed(run, long, "WF-A")) > 0


def test_nothing_to_remove_is_no_failure(run: Run, long: Path):
    result = run("prune", "--yes", "--store", long)
    assert (result.exit_code, result.out) == (0, "")
    assert result.err == "Nothing to remove from 2 workflows.\n"
    assert run("prune", "--yes", "--json", "--store", long).data["removed"] == 0


def test_at_most_so_many_of_a_phase_stay(run: Run, tmp_path: Path):
    from holdfast.domain.state import WorkflowState

    with bootstrap.open(str(tmp_path / "new"), retain=False) as service:
        for number in range(8):
            service.create_checkpoint("WF", WorkflowState(phase=number // 4, current_step=number))
    plan = run("prune", "--max-per-phase", "2", "--dry-run", "--json", "--store", tmp_path / "new").data
    assert plan["workflows"][0]["removed"] == [1, 2, 5, 6]


def test_one_workflow_that_fails_does_not_stop_the_others(run: Run, long: Path, monkeypatch):
    """A full disk while the first is pruned: the second is pruned all the same, and both are told."""
    real = CheckpointService.prune_checkpoints

    def fail_for_a(self, workflow_id, *args, **settings):
        if workflow_id == "WF-A":
            raise DiskFullError("no space left", place="/full", hint="Free space or prune, then try again.")
        return real(self, workflow_id, *args, **settings)

    monkeypatch.setattr(CheckpointService, "prune_checkpoints", fail_for_a)
    result = run("prune", *TWO, "--yes", "--store", long)
    assert result.exit_code == Exit.PARTIAL
    assert "failed: WF-A: no space left" in result.err
    assert len(listed(run, long, "WF-B")) == 2
    alone = run("prune", "WF-A", *TWO, "--yes", "--store", long)
    assert alone.exit_code == Exit.UNEXPECTED
    # That one should prune is no help to who does.
    assert "at: /full\n hint: Free a little on that disk by other means first" in alone.err


def test_ranges_are_short():
    assert _ranges((1, 2, 3, 7, 9, 10)) == "1-3, 7, 9-10"
    assert _ranges(()) == ""


def test_the_age_is_given_in_one_way(run: Run, long: Path):
    both = run("prune", "--keep-days", "1", "--keep-within", "36h", "--store", long)
    assert both.exit_code == Exit.USAGE
    assert run("prune", "--keep-within", "soon", "--store", long).exit_code == Exit.USAGE
    young = run("prune", "--keep-last", "0", "--keep-within", "36h", "--dry-run", "--json", "--store", long)
    assert young.data["removed"] == 0


def test_a_checkpoint_with_a_label_stays(run: Run, long: Path):
    with bootstrap.open(str(long)) as service:
        service.annotate("WF-A@3", labels=["for the review"])
    rules = ("--keep-last", "2", "--keep-days", "0", "--keep-tagged", "--yes")
    assert run("prune", "WF-A", *rules, "--store", long).exit_code == Exit.DONE
    assert listed(run, long, "WF-A") == [3, 11, 12]


def test_every_rule_reaches_the_plan_and_the_pruning(run: Run, long: Path):
    rules = (
        "--keep-last",
        "0",
        "--keep-days",
        "0",
        "--keep-daily",
        "1",
        "--keep-weekly",
        "1",
        "--keep-tagged",
    )
    plan = run("prune", "WF-A", *rules, "--max-bytes", "0", "--dry-run", "--json", "--store", long).data
    done = run("prune", "WF-A", *rules, "--max-bytes", "0", "--yes", "--json", "--store", long).data
    assert plan["removed"] == done["removed"] == 10
    assert listed(run, long, "WF-A") == [11, 12]
