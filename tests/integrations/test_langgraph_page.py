"""The sample of the page: run as it stands, and killed after its commits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.forks import Forks, forks
from tests.integrations.pages import ROOT, sample

PAGE = ROOT / "docs" / "integrations" / "langgraph.md"


@pytest.fixture(scope="module")
def runs() -> Iterator[Forks]:
    with forks(sample("langgraph")) as started:
        yield started


def printed() -> list[str]:
    """Answer what the page says that the sample prints."""
    found = re.search(r"prints, unless it is killed:\n\n```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def test_the_sample_prints_what_the_page_says(runs: Forks) -> None:
    assert runs.cold.lines == printed()


def test_killed_after_any_commit_it_goes_on_and_repeats_nothing_committed(
    runs: Forks, tmp_path: Path, campaign: bool
) -> None:
    kills = list(runs.kills(sample("langgraph"), tmp_path, every=campaign))
    for kill in kills:
        assert kill.second.lines[-3:] == printed()[-3:]
        done = Counter(line for line in kill.first.lines + kill.second.lines if line.endswith("runs"))
        # A node whose writes were not yet committed when the process died has to run again.
        assert done["research runs"] <= 2 and done["publish runs"] <= 2
        assert done.total() <= 3
    assert kills[-1].after > 13


def test_without_a_store_that_lasts_it_begins_again(runs: Forks, tmp_path: Path) -> None:
    """The control: what the other tests see is the store's doing."""
    forgetful = sample("langgraph").replace("file:agents", "memory:")
    assert [runs.run(forgetful, tmp_path).lines for _ in range(2)] == [printed()] * 2
