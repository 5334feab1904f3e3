"""The sample of the page, killed with `kill -9` after every commit, goes on where it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integrations.pages import KILLED, Run, run_sample, sample

ANSWER = "How does kelp hold on? notes on grip; notes on stalk"
STEPS = 5


def steps(run: Run) -> list[str]:
    return [line for line in run.lines if " runs" in line]


def killed_and_continued(code: str, folder: Path, commits: int) -> bool:
    """Kill the sample after so many commits and go on; tell whether there were as many."""
    folder.mkdir()
    if run_sample(code, folder, kill_after=commits).code != KILLED:
        return False
    again = run_sample(code, folder)
    assert again.code == 0, again.problem
    assert again.lines[-1] == ANSWER
    # The first commit is the beginning, the next five are what a step came to; then the store is closed.
    assert len(steps(again)) == max(STEPS - (commits - 1), 0)
    return True


def test_a_run_killed_after_any_commit_goes_on_and_repeats_no_step_that_had_answered(tmp_path: Path):
    code = sample("llama_index")
    whole = run_sample(code, tmp_path)
    assert whole.code == 0, whole.problem
    assert len(steps(whole)) == STEPS and whole.lines[-1] == ANSWER
    commits = 1
    while killed_and_continued(code, tmp_path / str(commits), commits):
        commits += 1
    assert commits > 1 + STEPS


@pytest.mark.parametrize("commits", [2, 5])
def test_a_run_kept_in_one_file_goes_on_too(commits: int, tmp_path: Path):
    code = sample("llama_index").replace("file:.holdfast", "sqlite:kept.db")
    assert killed_and_continued(code, tmp_path / "run", commits)


def test_without_what_was_kept_the_killed_sample_starts_over(tmp_path: Path):
    code = sample("llama_index")
    killed = run_sample(code, tmp_path, kill_after=4)
    assert killed.code == KILLED
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert len(steps(run_sample(code, elsewhere))) == STEPS
    assert len(steps(run_sample(code, tmp_path))) == 2


def test_a_run_that_has_ended_is_told_and_runs_nothing(tmp_path: Path):
    code = sample("llama_index")
    assert run_sample(code, tmp_path).code == 0
    assert run_sample(code, tmp_path).lines == [ANSWER]
