"""A recovery that is killed at any of its writes is recovered from by recovering again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.evidence import keep
from tests.process.running import run
from tests.recovery.places import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_recovery_is_killed_at_each_of_its_writes_and_recovers(
    kind: str, fast_folder: Path, campaign: bool
) -> None:
    stride = 1 if campaign else 3 if kind == "file" else 5
    result = run("recovery_children", "kill_each_write", kind=kind, folder=str(fast_folder), stride=stride)
    keep("recovery", f"kill -9 at each write, {kind}", {"kills": result["kills"]}, result["violations"])
    assert result["violations"] == []
    assert result["kills"] >= 4


def test_the_harness_notices_a_recovery_that_says_it_is_done_when_it_begins(fast_folder: Path) -> None:
    """The negative control."""
    sought = "whose work was not done"
    given = {"kind": "file", "folder": str(fast_folder), "stride": 1}
    result = run("recovery_children", "kill_each_write", lies=True, sought=sought, **given)
    keep("recovery", "control: completed before its handler ran", {"found": len(result["violations"])}, [])
    assert any(sought in violation for violation in result["violations"])
