"""`fork()` while a store is open: the child starts anew, the parent's locks stay its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.evidence import keep
from tests.process.running import run


@pytest.mark.parametrize("closes", [True, False], ids=["the child closes", "the child just ends"])
def test_hazard_05_child_and_parent_both_commit(closes: bool, fast_folder: Path) -> None:
    assert run("forking", "child_commits", root=str(fast_folder / "store"), closes=closes) == []


def test_hazard_05_forks_while_threads_of_the_parent_commit(fast_folder: Path, campaign: bool) -> None:
    forks = 500 if campaign else 40
    root = str(fast_folder / "store")
    violations = run("forking", "while_committing", root=root, forks=forks)
    keep("fork", "while threads commit", {"forks": forks}, violations)
    assert violations == []


def test_hazard_05_an_idle_child_does_not_keep_a_dead_parents_locks(fast_folder: Path) -> None:
    assert run("forking", "orphan", root=str(fast_folder / "store")) == []


def test_hazard_05_forks_while_the_service_commits(fast_folder: Path, campaign: bool) -> None:
    forks = 200 if campaign else 25
    root = str(fast_folder / "store")
    violations = run("stating", "forked", root=root, forks=forks)
    keep("fork", "through the service", {"forks": forks}, violations)
    assert violations == []
