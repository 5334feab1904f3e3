"""The sample of the page, killed with `kill -9` after its commits, goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.forks import KILLED, Forks, forks
from tests.integrations.pages import Run, sample

PAGE = sample("llama_index")
ANSWER = "How does kelp hold on? notes on grip; notes on stalk"
STEPS = 5


@pytest.fixture(scope="module")
def runs() -> Iterator[Forks]:
    with forks(PAGE) as started:
        yield started


def steps(run: Run) -> list[str]:
    return [line for line in run.lines if " runs" in line]


@pytest.mark.parametrize("url", ["file:.holdfast", "sqlite:kept.db"])
def test_a_run_killed_after_any_commit_goes_on_and_repeats_no_step_that_had_answered(
    url: str, runs: Forks, tmp_path: Path, campaign: bool
) -> None:
    assert len(steps(runs.cold)) == STEPS and runs.cold.lines[-1] == ANSWER
    kills = list(runs.kills(PAGE.replace("file:.holdfast", url), tmp_path, every=campaign))
    for kill in kills:
        assert kill.second.lines[-1] == ANSWER
        # The first commit is the beginning, the next five are what a step came to; then the store is closed.
        assert len(steps(kill.second)) == max(STEPS - (kill.after - 1), 0)
    assert kills[-1].after > STEPS


def test_without_what_was_kept_the_killed_sample_starts_over(runs: Forks, tmp_path: Path) -> None:
    assert runs.run(PAGE, tmp_path, kill_after=4).code == KILLED
    assert len(steps(runs.run(PAGE, tmp_path / "elsewhere"))) == STEPS
    assert len(steps(runs.run(PAGE, tmp_path))) == 2


def test_a_run_that_has_ended_is_told_and_runs_nothing(runs: Forks, tmp_path: Path) -> None:
    assert runs.run(PAGE, tmp_path).code == 0
    assert runs.run(PAGE, tmp_path).lines == [ANSWER]
