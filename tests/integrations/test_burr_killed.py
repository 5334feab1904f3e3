"""The sample of the page about Burr, killed after its commits and run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.forks import Forks, forks
from tests.integrations.pages import sample

PAGE = sample("burr")
STEPS = ["draft", "judge"] * 3 + ["publish"]


@pytest.fixture(scope="module")
def runs() -> Iterator[Forks]:
    with forks(PAGE) as started:
        yield started


@pytest.mark.parametrize("url", ["file:.holdfast", "sqlite:kept.db"])
def test_the_sample_killed_after_any_commit_goes_on_and_repeats_no_step(
    url: str, runs: Forks, tmp_path: Path, campaign: bool
) -> None:
    assert runs.cold.lines[0] == "begins" and runs.cold.lines[2] == "3 drafts"
    kills = list(runs.kills(PAGE.replace("file:.holdfast", url), tmp_path, every=campaign))
    for kill in kills:
        number = min(kill.after, len(STEPS)) - 1
        assert kill.second.lines == [
            f"goes on after step {number}, {STEPS[number]}",
            *runs.cold.lines[1:],
        ]
    assert kills[-1].after >= len(STEPS)


def test_the_sample_with_a_store_in_memory_begins_again(runs: Forks, tmp_path: Path) -> None:
    code = PAGE.replace("file:.holdfast", "memory:")
    for drafts in (3, 6):
        lines = runs.run(code, tmp_path).lines
        assert (lines[0], lines[2]) == ("begins", f"{drafts} drafts")
