"""The sample of the page: run as it stands, and killed after every commit."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from pathlib import Path

from tests.integrations.pages import KILLED, ROOT, run_sample, sample

PAGE = ROOT / "docs" / "integrations" / "langgraph.md"


def printed() -> list[str]:
    """Answer what the page says that the sample prints."""
    found = re.search(r"prints, unless it is killed:\n\n```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1].splitlines()


def test_the_sample_prints_what_the_page_says(tmp_path: Path):
    run = run_sample(sample("langgraph"), tmp_path)
    assert (run.code, run.lines) == (0, printed()), run.problem


def test_killed_after_any_commit_it_goes_on_and_repeats_nothing_committed(tmp_path: Path, campaign: bool):
    code = sample("langgraph")
    for after in itertools.count(1) if campaign else (2, 9):
        folder = tmp_path / str(after)
        folder.mkdir()
        first = run_sample(code, folder, kill_after=after)
        if first.code == 0:
            assert after > 14
            break
        assert first.code == KILLED, first.problem
        again = run_sample(code, folder)
        assert again.code == 0, again.problem
        assert again.lines[-3:] == printed()[-3:]
        runs = Counter(line for line in first.lines + again.lines if line.endswith("runs"))
        # A node whose writes were not yet committed when the process died has to run again.
        assert runs["research runs"] <= 2 and runs["publish runs"] <= 2
        assert sum(runs.values()) <= 3


def test_without_a_store_that_lasts_it_begins_again(tmp_path: Path):
    """The control: what the other tests see is the store's doing."""
    forgetful = sample("langgraph").replace("file:agents", "memory:")
    assert [run_sample(forgetful, tmp_path).lines for _ in range(2)] == [printed()] * 2
