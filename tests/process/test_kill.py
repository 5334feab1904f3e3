"""Real `kill -9` of real writers: what was acknowledged is there, what was not is whole or absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.process.evidence import keep
from tests.process.running import run

FOUR = ["WF-0", "WF-1", "WF-2", "WF-3"]

#: Name of the variant -> what the writer does, and how often it is killed in a campaign.
VARIANTS: dict[str, tuple[dict[str, Any], int]] = {
    "one writer": ({}, 2000),
    "several threads": ({"workflows": FOUR}, 2000),
    "during prunes and keyframes": ({"keyframes": True, "prunes": True, "erases": True}, 1200),
    "threads, prunes and keyframes": (
        {"workflows": FOUR, "keyframes": True, "prunes": True, "erases": True},
        800,
    ),
    "during close": ({"closes": True}, 1200),
}
#: Also how long one store lives.
ROUNDS = 10


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_killed_writer_loses_nothing_acknowledged(variant: str, fast_folder: Path, campaign: bool) -> None:
    plan, rounds = VARIANTS[variant]
    rounds = rounds if campaign else ROUNDS
    options = {"rounds": rounds, "rounds_per_store": ROUNDS, "folder": str(fast_folder)}
    result = run("children", "kill", seed=7, plan=plan, **options)
    counts = {name: result[name] for name in ("kills", "acknowledged")}
    keep("kill", variant, counts, result["violations"])
    assert result["violations"] == []
    assert result["kills"] == rounds and result["acknowledged"] > rounds


def test_a_writer_goes_on_beside_one_that_is_killed(fast_folder: Path, campaign: bool) -> None:
    rounds = 1000 if campaign else 6
    result = run("children", "neighbour", seed=7, rounds=rounds, folder=str(fast_folder), plan={})
    counts = {name: result[name] for name in ("kills", "acknowledged")}
    keep("kill", "neighbour", counts, result["violations"])
    assert result["violations"] == []
    assert result["kills"] == rounds


@pytest.mark.parametrize("moment", ["before", "halfway"])
def test_death_at_any_operation_is_survived_and_never_seen_by_a_reader(
    moment: str, fast_folder: Path, campaign: bool
) -> None:
    """Also between any two writes of the applier: commits, keyframes, prunes, settling, closing."""
    operations = run("children", "count", folder=str(fast_folder))
    first = 1 if moment == "before" else 4
    kill_at = list(range(first, operations + 1, 1 if campaign else 131))
    result = run("children", "enumerated", moment=moment, kill_at=kill_at, folder=str(fast_folder))
    counts = {name: result[name] for name in ("kills", "acknowledged", "reads")}
    keep("kill", f"{moment} an operation", {**counts, "operations": operations}, result["violations"])
    assert result["violations"] == []
    assert result["kills"] == len(kill_at)


def test_states_acknowledged_by_a_killed_service_come_back_equal(fast_folder: Path, campaign: bool) -> None:
    rounds = 1500 if campaign else 10
    result = run("stating", "killed", seed=7, rounds=rounds, folder=str(fast_folder))
    counts = {name: result[name] for name in ("kills", "acknowledged")}
    keep("kill", "states through the service", counts, result["violations"])
    assert result["violations"] == [] and result["acknowledged"] > rounds


@pytest.mark.parametrize(
    "lie",
    [
        {"acknowledges_first": True},
        # Large enough not to be full before the end: what is forgotten can never be settled.
        {"forgets": "journal/ring", "journal_bytes": 1 << 20},
        {"forgets": "checkpoints/"},
        {"forgets": "audit/log/order"},
        {"tells_apart": True},
    ],
    ids=str,
)
def test_the_harness_notices_a_writer_that_lies(lie: dict[str, Any], fast_folder: Path) -> None:
    """The negative control: with the promise broken on purpose the same loop must find it."""
    folder = str(fast_folder)
    # It ends with the first that is found; a kill seldom comes at the right moment on a busy machine.
    result = run("children", "kill", seed=7, rounds=600, rounds_per_store=10, folder=folder, plan=lie)
    keep("kill", f"control: {lie}", {"kills": result["kills"], "found": len(result["violations"])}, [])
    assert result["violations"] != []
    assert not any("ended by itself" in violation for violation in result["violations"])
