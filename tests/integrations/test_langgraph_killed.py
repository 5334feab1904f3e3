"""An agent killed after any commit goes on in a new process, and repeats no step that was kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integrations.forks import KILLED, Forks, forks
from tests.integrations.langgraph_stores import LASTING, url_of

STEPS = ["think 1", "act 2", "think 3", "review", "draft", "check", "part 0", "part 1", "part 2", "sum"]
#: On other days than those of a campaign they are only killed again and again.
OTHERS = ("sqlite", "postgres")
#: More kills than it takes to end.
KILLS_MAX = 200


def program(url: str, log: str = "log", forget_after: int = 0) -> str:
    """Answer the agent as a program, with all that any store needs."""
    return f"""
import holdfast.adapters.postgres.store
from tests.integrations.langgraph_program import main

main({url!r}, {log!r}, {forget_after})
"""


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
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an agent writes that nobody disturbs."""
    return tmp_path_factory.mktemp("undisturbed") / "log"


@pytest.fixture(scope="module")
def runs(undisturbed: Path) -> Iterator[Forks]:
    with forks(program("file:store", str(undisturbed))) as started:
        yield started


@pytest.fixture(scope="module")
def whole(runs: Forks, undisturbed: Path) -> Any:
    """What an agent comes to that nobody disturbs."""
    ran = [name for kind, name in lines(undisturbed) if kind == "ran"]
    assert violations(undisturbed) == [] and sorted(ran) == sorted(STEPS)
    return ended(undisturbed)


@pytest.mark.parametrize(
    "kind", ["file", *(pytest.param(kind, marks=pytest.mark.campaign) for kind in OTHERS)]
)
def test_an_agent_killed_after_any_commit_goes_on_and_ends_as_an_undisturbed_one(
    kind: str, runs: Forks, whole: Any, tmp_path: Path, campaign: bool
) -> None:
    last = 0
    for kill in runs.kills(lambda place: program(url_of(kind, place)), tmp_path, every=campaign):
        log, last = kill.folder / "log", kill.after
        assert violations(log) == [], f"killed after {kill.after} commits"
        assert ended(log) == whole
    assert last > len(STEPS)


@pytest.mark.parametrize("kind", LASTING)
def test_an_agent_killed_again_and_again_ends_as_an_undisturbed_one(
    kind: str, runs: Forks, whole: Any, tmp_path: Path, campaign: bool
) -> None:
    code, log = program(url_of(kind, tmp_path)), tmp_path / "log"
    kills = 0
    # Enough commits to get on each time.
    while (run := runs.run(code, tmp_path, 7 if campaign else 11)).code == KILLED:
        kills += 1
        assert kills < KILLS_MAX
    assert run.code == 0, run.problem
    assert kills > 1 and violations(log) == [] and ended(log) == whole


def test_with_a_saver_that_keeps_nothing_the_harness_goes_red(
    runs: Forks, whole: Any, tmp_path: Path
) -> None:
    """The negative control."""
    log = tmp_path / "log"
    assert runs.run(program("forgets:", forget_after=4), tmp_path).code == KILLED
    assert runs.run(program("forgets:"), tmp_path).code == 0
    assert "think 1 ran again" in violations(log) and ended(log) == whole
