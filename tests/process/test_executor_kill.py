"""A run that is killed anywhere goes on where it was: no committed agent and no effect happens twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.execution.effects import Unknown
from tests.process.evidence import keep
from tests.process.running import run
from tests.recovery.places import KINDS
from tests.sizes import daily

#: Writes that are left out between two kills on other days than that of a campaign.
STRIDES = {"file": 23, "sqlite": 19, "postgres": 37}


@pytest.mark.parametrize("kind", daily(KINDS, ["file", "postgres"]))
def test_a_run_is_killed_at_each_of_its_writes_and_ends_as_if_it_was_not(
    kind: str, fast_folder: Path, campaign: bool
) -> None:
    stride = 1 if campaign else STRIDES[kind]
    result = run(
        "executor_children", "kill_each_write", kind=kind, folder=str(fast_folder), stride=stride, seed=stride
    )
    keep("executor", f"kill -9 at each write, {kind}", result["counts"], result["violations"])
    assert result["violations"] == []
    assert result["counts"]["kills"] >= 4
    if campaign:
        assert {f"unknown: {policy}" for policy in Unknown} <= result["counts"].keys()


@pytest.mark.parametrize("kind", daily(KINDS, ["sqlite"]))
def test_a_run_is_killed_at_any_moment_again_and_again_and_ends_as_if_it_was_not(
    kind: str, fast_folder: Path, campaign: bool
) -> None:
    runs = 150 if campaign else 3
    result = run(
        "executor_children", "kill_at_random", kind=kind, folder=str(fast_folder), runs=runs, seed=runs
    )
    keep("executor", f"kill -9 at random, {kind}", result["counts"], result["violations"])
    assert result["violations"] == []
    # Whether a process is over before it is killed is a matter of luck; not a hundred times.
    assert result["counts"].get("kills", 0) >= (100 if campaign else 0)


@pytest.mark.parametrize(
    ("broken", "sought"),
    [("results later", "order began while the result of plan"), ("no ledger", "happened twice: ['order']")],
)
def test_the_harness_notices_what_is_broken(broken: str, sought: str, fast_folder: Path) -> None:
    """The negative controls."""
    given = {"kind": "file", "folder": str(fast_folder), "stride": 1, "seed": 2}
    result = run("executor_children", "kill_each_write", broken=broken, sought=sought, **given)
    keep("executor", f"control: {broken}", {"found": len(result["violations"])}, [])
    assert any(sought in violation for violation in result["violations"])
