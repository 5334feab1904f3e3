"""The samples of the page about plain functions and loops, killed after their commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.forks import KILLED, Forks, forks
from tests.integrations.pages import sample

PAGE = sample("no_framework")
#: What the samples print, and so do, once each in an undisturbed run.
STEPS = [*(f"search reef {topic}" for topic in ("grip", "stalk")), "write 4"]
STEPS += [f"fetch {page}" for page in range(2)]
ANSWERS = ("reef grip holds on", "the sum is", "['page 0'")


@pytest.fixture(scope="module")
def runs() -> Iterator[Forks]:
    with forks(PAGE) as started:
        yield started


def answers(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(ANSWERS)]


def test_the_samples_killed_after_any_commit_go_on_and_do_no_committed_step_twice(
    runs: Forks, tmp_path: Path, campaign: bool
) -> None:
    expected = answers(runs.cold.lines)
    assert len(expected) == 3
    kills = list(runs.kills(PAGE, tmp_path, every=campaign))
    for kill in kills:
        assert answers(kill.second.lines) == expected
        _check_steps(kill.first.lines, kill.second.lines)
    assert kills[-1].after > len(STEPS) + 4


def _check_steps(first: list[str], second: list[str]) -> None:
    """Nothing is left out, and at most what was at work at the kill is done again."""
    done = [line for line in first + second if line in STEPS]
    assert set(done) == set(STEPS)
    again = [line for line in first if line in STEPS and line in second]
    # The steps of `gather` are at work at once; all others one after another.
    assert len([line for line in again if not line.startswith("fetch")]) <= 1
    assert set(again) <= set(first[-3:])


@pytest.mark.parametrize("url", ["file:.holdfast", "sqlite:.holdfast.db"])
def test_a_sample_that_is_killed_again_and_again_ends_as_an_undisturbed_one(
    url: str, runs: Forks, tmp_path: Path
) -> None:
    code = PAGE.replace("file:.holdfast", url)
    lines: list[str] = []
    while True:
        run = runs.run(code, tmp_path, kill_after=6)
        lines += run.lines
        if run.code == 0:
            break
        assert run.code == KILLED, run.problem
    assert set(answers(lines)) == set(answers(runs.cold.lines))
    assert {line: lines.count(line) for line in STEPS[:3]} == dict.fromkeys(STEPS[:3], 1)


def test_without_a_store_that_stays_the_sample_starts_over(runs: Forks, tmp_path: Path) -> None:
    code = PAGE.replace("file:.holdfast", "memory:")
    first, second = runs.run(code, tmp_path), runs.run(code, tmp_path)
    assert [line for line in first.lines if line in STEPS] == STEPS
    assert second.lines == first.lines
