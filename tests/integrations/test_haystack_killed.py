"""The sample of the page about Haystack, killed after its commits and run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.forks import KILLED, Forks, forks
from tests.integrations.pages import sample

_STORE = '"file:.holdfast"'
_WORK = ("searching", "editing")
_END = "IT HOLDS ON WITH A HOLDFAST. | What is known about kelp."


@pytest.fixture(scope="module")
def runs() -> Iterator[Forks]:
    with forks(sample("haystack")) as started:
        yield started


@pytest.mark.parametrize("store", [_STORE, '"sqlite:haystack.db"'], ids=["file", "sqlite"])
def test_the_sample_ends_the_same_wherever_it_is_killed(
    store: str, runs: Forks, tmp_path: Path, campaign: bool
) -> None:
    assert _STORE in sample("haystack") and runs.cold.lines[-1] == _END
    kills = list(runs.kills(sample("haystack").replace(_STORE, store), tmp_path, every=campaign))
    for kill in kills:
        assert kill.second.lines[-1] == _END
        # Each component's state before it is durable, so nothing that was done is done again.
        work = [line for line in kill.first.lines + kill.second.lines if line.startswith(_WORK)]
        assert work == ["searching for kelp", "editing"], kill.after
    assert kills[-1].after > 4


def test_without_the_steps_a_kill_leaves_nothing(runs: Forks, tmp_path: Path) -> None:
    code = sample("haystack").replace(
        "snapshots.run(pipeline, inputs)", "pipeline.run(inputs, snapshot_callback=snapshots)"
    )
    code = code.replace('print("editing")', 'print("editing")\n        os.kill(os.getpid(), 9)')
    for _ in range(2):
        run = runs.run(code, tmp_path)
        assert run.code == KILLED and run.lines == ["searching for kelp", "editing"]
