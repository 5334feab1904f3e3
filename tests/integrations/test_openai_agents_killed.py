"""The sample of the page: as it stands, and killed with `kill -9` after its commits and run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.forks import Forks, forks
from tests.integrations.pages import sample

PAGE = sample("openai_agents")
ANSWER = "answer: Done: 70 to Ann. (4 items)"
ASKED = 'asked: pay {"to":"Ann","amount":70}'


@pytest.fixture(scope="module")
def runs() -> Iterator[Forks]:
    with forks(PAGE) as started:
        yield started


def paid(folder: Path) -> str:
    return (folder / "paid.txt").read_text(encoding="utf-8")


def test_the_sample_of_the_page_runs_as_it_stands(runs: Forks) -> None:
    assert runs.cold.lines == [ASKED, "going on: waiting", ANSWER]


@pytest.mark.parametrize("url", ["file:.holdfast", "sqlite:store.db"])
def test_the_sample_killed_after_any_commit_goes_on_and_pays_once(
    url: str, runs: Forks, tmp_path: Path, campaign: bool
) -> None:
    code = PAGE.replace("file:.holdfast", url)
    assert url in code
    kills = list(runs.kills(code, tmp_path, every=campaign))
    for kill in kills:
        assert kill.second.lines[-1] == ANSWER
        assert paid(kill.folder) == "call-1: 70 to Ann\n", kill
    assert kills[-1].after > 7
    # What was asked and answered before the kill is not asked again, and what was over is not begun again.
    goings_on = {tuple(kill.second.lines[:-1]) for kill in kills}
    possible = {(ASKED, "going on: waiting"), ("going on: waiting",), ("going on: taken",), ()}
    assert goings_on == possible if campaign else goings_on <= possible


def test_without_the_vault_a_killed_run_asks_and_pays_again(runs: Forks, tmp_path: Path) -> None:
    code = PAGE.replace('kept = await vault.look("payment-1")', "kept = None")
    code = code.replace('"payment-1"', "RUN").replace("not in ledger.read()", "is not None")
    # Each process knows only of runs of its own.
    code = "import uuid\nRUN = str(uuid.uuid4())\n" + code
    kills = runs.kills(code, tmp_path, every=False)
    assert max(len(paid(kill.folder).splitlines()) for kill in kills) == 2


def test_without_its_session_a_run_that_is_taken_again_leaves_its_items_twice(
    runs: Forks, tmp_path: Path
) -> None:
    code = PAGE.replace("again=True, session=session", "again=True")
    assert any(kill.second.lines[-1] != ANSWER for kill in runs.kills(code, tmp_path, every=True))
