"""Eight threads and four processes at once: nothing lost, no sequence used twice, lost races told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.evidence import keep
from tests.process.running import run


@pytest.mark.parametrize("shared", [True, False], ids=["one workflow", "many workflows"])
@pytest.mark.parametrize(("processes", "threads"), [(1, 8), (4, 1), (4, 2)])
def test_writers_at_once_lose_nothing(
    processes: int, threads: int, shared: bool, fast_folder: Path, campaign: bool
) -> None:
    result = run(
        "writers",
        "crowd",
        root=str(fast_folder / "store"),
        processes=processes,
        threads=threads,
        shared=shared,
        lockless=False,
        commits=(500 if campaign else 10) if shared else (1000 if campaign else 20),
    )
    label = f"{processes} processes, {threads} threads, {'one workflow' if shared else 'many'}"
    counts = {name: result[name] for name in ("acknowledged", "conflicts")}
    keep("many_writers", label, counts, result["violations"])
    assert result["violations"] == []


def test_without_the_lock_the_harness_goes_red(fast_folder: Path) -> None:
    """The negative control."""
    result = run(
        "writers",
        "crowd",
        root=str(fast_folder / "store"),
        processes=4,
        threads=1,
        shared=True,
        lockless=True,
        commits=60,
    )
    keep("many_writers", "control: no lock", {"found": len(result["violations"])}, [])
    assert result["violations"] != []


def test_closing_while_threads_commit_keeps_or_refuses(fast_folder: Path, campaign: bool) -> None:
    rounds = 300 if campaign else 8
    result = run("writers", "closing", root=str(fast_folder), rounds=rounds)
    counts = {"rounds": rounds, "acknowledged": result["acknowledged"]}
    keep("many_writers", "closing", counts, result["violations"])
    assert result["violations"] == []


def test_processes_that_count_together_through_the_service_count_right(
    fast_folder: Path, campaign: bool
) -> None:
    each = 300 if campaign else 10
    assert run("stating", "compete", root=str(fast_folder / "store"), processes=4, each=each) == []
