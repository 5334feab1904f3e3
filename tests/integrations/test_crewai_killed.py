"""The sample of the page, killed with `kill -9` after its commits, goes on where it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.forks import KILLED, Forks, forks
from tests.integrations.pages import Run, sample

#: Each flow would make a memory, in a database beside the program, and none here uses it.
WITHOUT_MEMORY = """
from crewai.memory.storage.factory import set_memory_storage_factory

set_memory_storage_factory(lambda spec: object())
"""
PAGE = WITHOUT_MEMORY + sample("crewai")
METHODS = ["plan runs", "research runs", "judge runs", "publish runs"]
END = ["answer: notes on grip", "published: 1"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forks]:
    with pytest.MonkeyPatch.context() as patch:
        # Where CrewAI puts the memory that it makes for every flow.
        patch.setenv("CREWAI_STORAGE_DIR", str(tmp_path_factory.mktemp("memory")))
        with forks(sample("crewai")) as started:
            yield started


def methods(run: Run) -> list[str]:
    return [line for line in run.lines if line.endswith(" runs")]


def test_the_sample_runs_in_a_process_of_its_own(runs: Forks) -> None:
    assert methods(runs.cold) == METHODS and runs.cold.lines[-2:] == END


@pytest.mark.parametrize("url", ["file:.holdfast", "sqlite:kept.db"])
def test_a_flow_killed_after_any_commit_repeats_no_method_that_was_completed(
    url: str, runs: Forks, tmp_path: Path, campaign: bool
) -> None:
    kills = list(runs.kills(PAGE.replace("file:.holdfast", url), tmp_path, every=campaign))
    for kill in kills:
        assert methods(kill.first) == METHODS[: kill.after]
        assert methods(kill.second) == METHODS[kill.after :]
        assert kill.second.lines[-2:] == END
    assert kills[-1].after >= len(METHODS)


def test_without_once_every_method_runs_again(runs: Forks, tmp_path: Path) -> None:
    code = PAGE.replace("    @store.once\n", "")
    assert runs.run(code, tmp_path, kill_after=4).code == KILLED
    again = runs.run(code, tmp_path)
    assert methods(again) == METHODS
    # The state had come back: what is counted in it is counted twice.
    assert again.lines[-1] == "published: 2"


def test_without_what_was_kept_the_killed_sample_starts_over(runs: Forks, tmp_path: Path) -> None:
    assert runs.run(PAGE, tmp_path, kill_after=2).code == KILLED
    assert methods(runs.run(PAGE, tmp_path / "elsewhere")) == METHODS
