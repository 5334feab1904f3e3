"""The sample of the page about Google ADK, killed after its commits and run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.forks import KILLED, Forks, forks
from tests.integrations.pages import sample

_STORE = 'HoldfastSessionService("file:.holdfast")'
_LOOKUP = "looking up:"


@pytest.fixture(scope="module")
def runs() -> Iterator[Forks]:
    with forks(sample("google_adk")) as started:
        yield started


def code(store: str) -> str:
    assert _STORE in sample("google_adk")
    return sample("google_adk").replace(_STORE, store)


def told(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith(_LOOKUP)]


def lookups(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(_LOOKUP)]


@pytest.mark.parametrize("store", [_STORE, 'HoldfastSessionService("sqlite:adk.db")'], ids=["file", "sqlite"])
def test_the_sample_ends_the_same_wherever_it_is_killed(
    store: str, runs: Forks, tmp_path: Path, campaign: bool
) -> None:
    whole = runs.cold.lines
    assert told(whole)[-1] == "lookups: 2" and len(lookups(whole)) == 2
    kills = list(runs.kills(code(store), tmp_path, every=campaign))
    for kill in kills:
        first, second = lookups(kill.first.lines), lookups(kill.second.lines)
        assert told(kill.second.lines) == told(whole), kill.after
        # A tool that had answered, but whose answer was not durable yet, is the only one that is asked again.
        assert set(first) & set(second) <= set(first[-1:])
        assert set(first) | set(second) == set(lookups(whole))
    assert kills[-1].after > 9


def test_without_the_store_a_killed_sample_begins_anew(runs: Forks, tmp_path: Path) -> None:
    in_memory = code('HoldfastSessionService("memory:")').replace(
        "return next(", 'question.count("tall") and os.kill(os.getpid(), 9)\n    return next('
    )
    assert runs.run(in_memory, tmp_path).code == KILLED
    assert len(lookups(runs.run(in_memory, tmp_path).lines)) == 2
