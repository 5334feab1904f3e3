"""Several executors want one workflow: one has it at a time, and who lost it writes nothing more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.evidence import keep
from tests.process.running import run
from tests.recovery.places import KINDS
from tests.sizes import daily


@pytest.mark.parametrize("kind", daily(KINDS, ["file", "postgres"]))
def test_an_executor_is_refused_while_another_one_works_and_let_in_at_once_when_that_was_killed(
    kind: str, fast_folder: Path, campaign: bool
) -> None:
    rounds = 40 if campaign else 1
    result = run("executor_rivals", "killed_holder", kind=kind, folder=str(fast_folder), rounds=rounds)
    keep("executor", f"rivals: a killed holder, {kind}", result["counts"], result["violations"])
    assert result["violations"] == []


# PostgreSQL may keep the row of who was stopped in the middle of a renewal for half a minute.
@pytest.mark.parametrize("kind", daily(KINDS, ["file", "sqlite"]))
def test_an_executor_that_was_stopped_past_its_lease_writes_nothing_more_and_says_so(
    kind: str, fast_folder: Path, campaign: bool
) -> None:
    rounds = 40 if campaign else 2
    result = run("executor_rivals", "stopped_holder", kind=kind, folder=str(fast_folder), rounds=rounds)
    keep("executor", f"rivals: a stopped holder, {kind}", result["counts"], result["violations"])
    assert result["violations"] == []


@pytest.mark.parametrize("kind", daily(KINDS, ["sqlite", "postgres"]))
def test_of_executors_that_begin_at_once_one_works_at_a_time_and_all_have_the_result(
    kind: str, fast_folder: Path, campaign: bool
) -> None:
    rounds = 60 if campaign else 2
    result = run("executor_rivals", "crowd", kind=kind, folder=str(fast_folder), rounds=rounds, seed=rounds)
    keep("executor", f"rivals: at once, {kind}", result["counts"], result["violations"])
    assert result["violations"] == []
    assert result["counts"]["refused"] > 0


def test_the_harness_notices_executors_without_a_lease(fast_folder: Path) -> None:
    """The negative control."""
    given = {"kind": "file", "folder": str(fast_folder), "rounds": 1, "broken": "no lease"}
    result = run("executor_rivals", "killed_holder", **given)
    keep("executor", "control: no lease", {"found": len(result["violations"])}, [])
    assert "K-0: 2 worked at once" in result["violations"]
