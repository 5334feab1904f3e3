"""An agent killed after any commit goes on in a new process, and repeats no step that was kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.langgraph_program import run
from tests.integrations.langgraph_stores import LASTING, url_of

KILLED = -9
STEPS = ["think 1", "act 2", "think 3", "review", "draft", "check", "part 0", "part 1", "part 2", "sum"]
#: More commits than the agent makes.
COMMITS_MAX = 200


def lines(log: Path) -> list[tuple[str, str]]:
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in log.read_text().splitlines()]


def ended(log: Path) -> Any:
    states = [json.loads(text) for kind, text in lines(log) if kind == "ended"]
    # A process may be killed after it told its end, by a commit when it closes the store.
    assert states[0] == states[-1]
    return states[-1]


def violations(log: Path) -> list[str]:
    """Name the steps that ran again after they were kept, and those that never ran."""
    kept, wrong, ran = set(), [], set()
    for kind, name in lines(log):
        if kind == "kept":
            kept.add(name)
        elif kind == "ran":
            ran.add(name)
            wrong += [f"{name} ran again"] if name in kept else []
    return wrong + [f"{name} never ran" for name in STEPS if name not in ran]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What an agent comes to that nobody disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    log = folder / "log"
    assert run(url_of("file", folder), log) == 0
    assert violations(log) == [] and sorted(name for kind, name in lines(log) if kind == "ran") == sorted(
        STEPS
    )
    return ended(log)


@pytest.mark.parametrize("kind", LASTING)
def test_an_agent_killed_after_any_commit_goes_on_and_ends_as_an_undisturbed_one(
    kind: str, whole: Any, tmp_path: Path, campaign: bool
) -> None:
    every = 1 if campaign else 15
    # On other days each store takes other commits.
    first = 1 if campaign else 3 + 5 * LASTING.index(kind)
    for commits in range(first, COMMITS_MAX, every):
        folder = tmp_path / str(commits)
        folder.mkdir()
        url, log = url_of(kind, folder), folder / "log"
        code = run(url, log, commits)
        if code == 0:
            assert commits > len(STEPS)
            return
        assert code == KILLED
        assert run(url, log) == 0
        assert violations(log) == [], f"killed after {commits} commits"
        assert ended(log) == whole
    raise AssertionError("the agent never ended by itself")


@pytest.mark.parametrize("kind", LASTING)
def test_an_agent_killed_again_and_again_ends_as_an_undisturbed_one(
    kind: str, whole: Any, tmp_path: Path, campaign: bool
) -> None:
    url, log = url_of(kind, tmp_path), tmp_path / "log"
    kills = 0
    # Enough commits to get on each time.
    while run(url, log, 7 if campaign else 11) == KILLED:
        kills += 1
        assert kills < COMMITS_MAX
    assert kills > 1 and violations(log) == [] and ended(log) == whole


def test_with_a_saver_that_keeps_nothing_the_harness_goes_red(whole: Any, tmp_path: Path) -> None:
    """The negative control."""
    log = tmp_path / "log"
    assert run("forgets:", log, 4) == KILLED
    assert run("forgets:", log) == 0
    assert "think 1 ran again" in violations(log) and ended(log) == whole
