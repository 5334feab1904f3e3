"""The sample of the page, killed with `kill -9` after every commit, goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.crewai_runs import Runs, warm_runs
from tests.integrations.pages import KILLED, Run, run_sample, sample

METHODS = ["plan runs", "research runs", "judge runs", "publish runs"]
END = ["answer: notes on grip", "published: 1"]


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with warm_runs() as started:
        yield started


def methods(run: Run) -> list[str]:
    return [line for line in run.lines if line.endswith(" runs")]


def killed_and_continued(runs: Runs, code: str, folder: Path, commits: int) -> bool:
    """Kill the sample after so many commits and go on; tell whether there were as many."""
    folder.mkdir()
    killed = runs.run(code, folder, kill_after=commits)
    if killed.code != KILLED:
        assert killed.code == 0, killed.problem
        return False
    assert methods(killed) == METHODS[:commits]
    again = runs.run(code, folder)
    assert again.code == 0, again.problem
    assert methods(again) == METHODS[commits:]
    assert again.lines[-2:] == END
    return True


@pytest.mark.parametrize("url", ["file:.holdfast", "sqlite:kept.db"])
def test_a_flow_killed_after_any_commit_repeats_no_method_that_was_completed(
    url: str, runs: Runs, tmp_path: Path
):
    code = sample("crewai").replace("file:.holdfast", url)
    commits = 1
    while killed_and_continued(runs, code, tmp_path / str(commits), commits):
        commits += 1
    assert commits > len(METHODS)


def test_without_once_every_method_runs_again(runs: Runs, tmp_path: Path):
    code = sample("crewai").replace("    @store.once\n", "")
    assert runs.run(code, tmp_path, kill_after=4).code == KILLED
    again = runs.run(code, tmp_path)
    assert methods(again) == METHODS
    # The state had come back: what is counted in it is counted twice.
    assert again.lines[-1] == "published: 2"


def test_without_what_was_kept_the_killed_sample_starts_over(runs: Runs, tmp_path: Path):
    code = sample("crewai")
    assert runs.run(code, tmp_path, kill_after=2).code == KILLED
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert methods(runs.run(code, elsewhere)) == METHODS


def test_the_sample_runs_in_a_process_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    # Where CrewAI puts the memory that it makes for every flow.
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "memory"))
    run = run_sample(sample("crewai"), tmp_path)
    assert run.code == 0, run.problem
    assert methods(run) == METHODS and run.lines[-2:] == END
