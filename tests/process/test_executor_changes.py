"""The program changes between a crash and the next run: what fits is kept, what changed is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.process.running import run

BEGUN = {"agents": ["a", "b", "c", "d"], "dies": "c"}


def play(folder: Path, *lives: dict[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """Begin, die in the third of four agents, go on; answer the last life and how often each body ran."""
    played, bodies = play_all(folder, *lives)
    return played[-1], bodies


def play_all(folder: Path, *lives: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Do so; answer every life after the first."""
    played = run("executor_scenes", "changed", kind="file", folder=str(folder), lives=[BEGUN, *lives])
    assert played["lives"][0]["status"] == -9
    return played["lives"][1:], played["bodies"]


#: What the program is now; what is told of it; which bodies ran altogether.
CHANGES: dict[str, tuple[list[str], list[str], dict[str, int]]] = {
    "inserted": (
        ["a", "x", "b", "c", "d"],
        ["agent 'x' is new: it is run now"],
        {"a": 1, "b": 1, "c": 2, "d": 1, "x": 1},
    ),
    "renamed": (
        ["a", "bee", "c", "d"],
        ["agent 'bee' is new: it is run now", "agent 'b' is gone: its results are kept"],
        {"a": 1, "b": 1, "bee": 1, "c": 2, "d": 1},
    ),
    "removed": (
        ["a", "c", "d"],
        ["agent 'b' is gone: its results are kept"],
        {"a": 1, "b": 1, "c": 2, "d": 1},
    ),
    "reordered": (
        ["a", "c", "b", "d"],
        ["agent 'b' stands elsewhere: its results are kept"],
        {"a": 1, "b": 1, "c": 2, "d": 1},
    ),
    "moved to another stage": (
        ["a", "side:b", "c", "d"],
        ["agent 'b' stands elsewhere: its results are kept"],
        {"a": 1, "b": 1, "c": 2, "d": 1},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_fits_is_kept_and_what_changed_is_told(change: str, fast_folder: Path) -> None:
    agents, told, bodies = CHANGES[change]
    last, ran = play(fast_folder, {"agents": agents, "reads": ["a", "b", "c"]})
    assert last["word"] == "completed"
    assert set(told) <= set(last["warnings"])
    assert ran == bodies
    assert last["results"]["d"] == {name: f"{name} did" for name in "abc"}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_program_is_refused_where_that_was_asked_for_and_nothing_runs(
    change: str, fast_folder: Path
) -> None:
    agents, told, _ = CHANGES[change]
    lives = [{"agents": agents, "strict": True}, {"agents": list("abcd")}]
    [refused, last], ran = play_all(fast_folder, *lives)
    assert (refused["word"], refused["error"]) == ("refused", "GraphChangedError")
    assert all(text in refused["message"] for text in told)
    # A refusal leaves the run as it was: the program that began it goes on, and only its bodies ran.
    assert last["word"] == "completed" and last["warnings"] == []
    assert ran == {"a": 1, "b": 1, "c": 2, "d": 1}


def test_an_agent_that_is_said_to_be_renamed_keeps_its_results_also_for_whoever_comes_later(
    fast_folder: Path,
) -> None:
    renamed = {"agents": ["a", "bee", "c", "d"], "renamed": {"b": "bee"}, "dies": "d"}
    last, ran = play(fast_folder, renamed, {"agents": ["a", "bee", "c", "d"], "reads": ["bee"]})
    assert last["word"] == "completed"
    assert last["results"]["d"] == {"bee": "b did"}
    assert ran == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_an_agent_can_be_renamed_again(fast_folder: Path) -> None:
    once = {"agents": ["a", "bee", "c", "d"], "renamed": {"b": "bee"}, "dies": "d"}
    twice = {"agents": ["a", "bea", "c", "d"], "renamed": {"bee": "bea"}, "reads": ["bea"]}
    last, ran = play(fast_folder, once, twice)
    assert last["results"]["d"] == {"bea": "b did"}
    assert last["warnings"] == ["agent 'bee' is called 'bea' now: its results are kept"]
    assert "bea" not in ran and "bee" not in ran


def test_an_agent_that_was_renamed_while_it_worked_goes_on_as_the_step_that_it_was(fast_folder: Path) -> None:
    """Its effects have keys that are made of its name: they must not be done again under another."""
    last, ran = play(
        fast_folder, {"agents": ["a", "b", "cee", "d"], "renamed": {"c": "cee"}, "reads": ["cee"]}
    )
    assert last["results"]["c"] == "cee did"
    assert last["results"]["d"] == {"cee": "cee did"}
    assert ran == {"a": 1, "b": 1, "c": 2, "d": 1}


def test_the_same_program_is_told_nothing(fast_folder: Path) -> None:
    last, ran = play(fast_folder, {"agents": ["a", "b", "c", "d"], "strict": True})
    assert last["word"] == "completed" and last["warnings"] == []
    assert (last["ran"], last["kept"]) == (2, 2)
    assert ran == {"a": 1, "b": 1, "c": 2, "d": 1}
