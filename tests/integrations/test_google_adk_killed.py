"""The sample of the page about Google ADK, killed after each of its commits and run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integrations.google_adk_forks import Forks, forks
from tests.integrations.pages import KILLED, sample

_STORE = 'HoldfastSessionService("file:.holdfast")'
_LOOKUP = "looking up:"


@pytest.fixture(scope="module")
def nursery() -> Iterator[Forks]:
    with forks("google_adk") as found:
        yield found


def code(store: str) -> str:
    assert _STORE in sample("google_adk")
    return sample("google_adk").replace(_STORE, store)


def told(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith(_LOOKUP)]


def lookups(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith(_LOOKUP)]


@pytest.mark.parametrize("store", [_STORE, 'HoldfastSessionService("sqlite:adk.db")'], ids=["file", "sqlite"])
def test_the_sample_ends_the_same_wherever_it_is_killed(store: str, nursery: Forks, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    whole = nursery.run(code(store), tmp_path / "whole")
    assert whole.code == 0, whole.problem
    assert told(whole.lines)[-1] == "lookups: 2" and len(lookups(whole.lines)) == 2

    kill_after, is_killed = 0, True
    while is_killed:
        kill_after += 1
        folder = tmp_path / str(kill_after)
        folder.mkdir()
        first = nursery.run(code(store), folder, kill_after)
        is_killed = first.code == KILLED
        second = nursery.run(code(store), folder)
        assert second.code == 0, second.problem
        assert told(second.lines) == told(whole.lines), kill_after
        # A tool that had answered, but whose answer was not durable yet, is the only one that is asked again.
        repeated = set(lookups(first.lines)) & set(lookups(second.lines))
        assert repeated <= set(lookups(first.lines)[-1:])
        assert set(lookups(first.lines)) | set(lookups(second.lines)) == set(lookups(whole.lines))
    assert kill_after > 10


def test_without_the_store_a_killed_sample_begins_anew(nursery: Forks, tmp_path: Path) -> None:
    in_memory = code('HoldfastSessionService("memory:")').replace(
        "return next(", 'question.count("tall") and os.kill(os.getpid(), 9)\n    return next('
    )
    assert nursery.run(in_memory, tmp_path).code == KILLED
    assert len(lookups(nursery.run(in_memory, tmp_path).lines)) == 2
