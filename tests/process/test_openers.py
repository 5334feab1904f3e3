"""Several processes open, and so create, one store at once: each finds the same one and keeps its commits."""

from __future__ import annotations

from pathlib import Path

from tests.process.evidence import keep
from tests.process.running import run


def test_processes_that_create_one_store_at_once_share_it(fast_folder: Path, campaign: bool) -> None:
    rounds = 300 if campaign else 5
    result = run("opening", "at_once", root=str(fast_folder), rounds=rounds)
    keep("openers", "at once", {"rounds": rounds}, result["violations"])
    assert result["violations"] == []


def test_without_the_locks_of_opening_the_harness_goes_red(fast_folder: Path) -> None:
    """The negative control: who looked before another one wrote takes that one's journal for nobody's."""
    result = run("opening", "without_locks", root=str(fast_folder))
    keep("openers", "control: no locks", {"found": len(result["violations"])}, [])
    lost = [text for text in result["violations"] if "WF-Disk@" in text and "acknowledged and lost" in text]
    assert len(lost) == 3, result["violations"]
