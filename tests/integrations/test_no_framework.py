"""The samples of the page about plain functions and loops, killed after each of their commits."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from tests.integrations.pages import KILLED, run_sample, sample

PAGE = sample("no_framework")
#: What the samples print, and so do, once each in an undisturbed run.
STEPS = [*(f"search reef {topic}" for topic in ("grip", "stalk")), "write 4"]
STEPS += [f"fetch {page}" for page in range(2)]
ANSWERS = ("reef grip holds on", "the sum is", "['page 0'")


def answers(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(ANSWERS)]


def test_the_samples_killed_after_every_commit_go_on_and_do_no_committed_step_twice(tmp_path: Path) -> None:
    expected = answers(run_sample(PAGE, _folder(tmp_path, 0)).lines)
    assert len(expected) == 3
    for kill_after in count(1):
        folder = _folder(tmp_path, kill_after)
        first = run_sample(PAGE, folder, kill_after)
        if first.code == 0:
            assert kill_after > len(STEPS) + 5
            return
        assert first.code == KILLED, first.problem
        second = run_sample(PAGE, folder)
        assert second.code == 0, second.problem
        assert answers(second.lines) == expected
        _check_steps(first.lines, second.lines)


def _check_steps(first: list[str], second: list[str]) -> None:
    """Nothing is left out, and at most what was at work at the kill is done again."""
    done = [line for line in first + second if line in STEPS]
    assert set(done) == set(STEPS)
    again = [line for line in first if line in STEPS and line in second]
    # The steps of `gather` are at work at once; all others one after another.
    assert len([line for line in again if not line.startswith("fetch")]) <= 1
    assert set(again) <= set(first[-3:])


@pytest.mark.parametrize("url", ["file:.holdfast", "sqlite:.holdfast.db"])
def test_a_sample_that_is_killed_again_and_again_ends_as_an_undisturbed_one(tmp_path: Path, url: str) -> None:
    code = PAGE.replace("file:.holdfast", url)
    expected = answers(run_sample(code, _folder(tmp_path, 0)).lines)
    folder = _folder(tmp_path, 1)
    lines: list[str] = []
    while True:
        run = run_sample(code, folder, kill_after=6)
        lines += run.lines
        if run.code == 0:
            break
    assert set(answers(lines)) == set(expected)
    assert {line: lines.count(line) for line in STEPS[:3]} == dict.fromkeys(STEPS[:3], 1)


def test_without_a_store_that_stays_the_sample_starts_over(tmp_path: Path) -> None:
    code = PAGE.replace("file:.holdfast", "memory:")
    first, second = run_sample(code, tmp_path), run_sample(code, tmp_path)
    assert [line for line in first.lines if line in STEPS] == STEPS
    assert second.lines == first.lines


def _folder(parent: Path, number: int) -> Path:
    folder = parent / str(number)
    folder.mkdir()
    return folder
