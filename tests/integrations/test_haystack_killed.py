"""The sample of the page about Haystack, killed after each of its commits and run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.google_adk_forks import Forks, forks
from tests.integrations.pages import KILLED, sample

_STORE = '"file:.holdfast"'
_WORK = ("searching", "editing")


@pytest.fixture(scope="module")
def nursery() -> Iterator[Forks]:
    with forks("haystack") as found:
        yield found


@pytest.mark.parametrize("store", [_STORE, '"sqlite:haystack.db"'], ids=["file", "sqlite"])
def test_the_sample_ends_the_same_wherever_it_is_killed(store: str, nursery: Forks, tmp_path: Path) -> None:
    assert _STORE in sample("haystack")
    code = sample("haystack").replace(_STORE, store)
    expected = ["searching for kelp", "editing"]
    kill_after, is_killed, end = 0, True, "IT HOLDS ON WITH A HOLDFAST. | What is known about kelp."
    while is_killed:
        kill_after += 1
        folder = tmp_path / str(kill_after)
        folder.mkdir()
        first, second = nursery.run(code, folder, kill_after), nursery.run(code, folder)
        is_killed = first.code == KILLED
        assert second.code == 0, second.problem
        assert second.lines[-1] == end
        # Each component's state before it is durable, so nothing that was done is done again.
        work = [line for line in first.lines + second.lines if line.startswith(_WORK)]
        assert work == expected, kill_after
    assert kill_after > 5


def test_without_the_steps_a_kill_leaves_nothing(nursery: Forks, tmp_path: Path) -> None:
    code = sample("haystack").replace(
        "snapshots.run(pipeline, inputs)", "pipeline.run(inputs, snapshot_callback=snapshots)"
    )
    code = code.replace('print("editing")', 'print("editing")\n        os.kill(os.getpid(), 9)')
    for _ in range(2):
        run = nursery.run(code, tmp_path)
        assert run.code == KILLED and run.lines == ["searching for kelp", "editing"]
