"""The sample of the page about Pydantic AI, killed with `kill -9` after its commits and run again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from tests.integrations.forks import KILLED, Forks, forks
from tests.integrations.pages import Run, sample

PAGE = sample("pydantic_ai")
DURABLE = "capabilities=[HoldfastDurability()]"
OPERATIONS = 7


@pytest.fixture(scope="module")
def runs() -> Iterator[Forks]:
    with forks(PAGE) as started:
        yield started


def done_in(run: Run) -> list[str]:
    """Answer what models and tools did."""
    return [line for line in run.lines if line.startswith(("model:", "tool:"))]


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_a_killed_sample_goes_on_and_repeats_nothing(
    scheme: str, runs: Forks, tmp_path: Path, campaign: bool
) -> None:
    assert len(done_in(runs.cold)) == OPERATIONS
    assert runs.cold.lines[-1] == "14 coins after 4 requests"
    code = PAGE.replace("file:.holdfast", f"{scheme}:.holdfast")
    kills = list(runs.kills(code, tmp_path, every=campaign))
    for kill in kills:
        assert kill.second.lines[-1] == runs.cold.lines[-1]
        assert done_in(kill.first) + done_in(kill.second) == done_in(runs.cold)
    # Each operation is a commit, and so are the beginning and the end.
    assert kills[-1].after > OPERATIONS


def test_without_the_capability_a_killed_sample_starts_over(runs: Forks, tmp_path: Path) -> None:
    assert DURABLE in PAGE
    code = PAGE.replace(DURABLE, "capabilities=[]")
    first, second = runs.run(code, tmp_path, kill_after=1), runs.run(code, tmp_path)
    assert first.code == KILLED and second.code == 0, second.problem
    assert done_in(first) == done_in(second) and len(done_in(second)) == OPERATIONS


def test_the_trail_and_the_journal_tell_that_a_run_went_on(runs: Forks, tmp_path: Path) -> None:
    runs.run(PAGE, tmp_path, kill_after=4)
    runs.run(PAGE, tmp_path)
    with holdfast.open(f"file:{tmp_path}/.holdfast") as service:
        events = service.events("order-7")
        starts = [event.data["attempt"] for event in events if event.type == "AGENT_STARTED"]
        operations = [event.step_id for event in events if "operation" in event.data]
        told = service.audit.query_events(workflow="order-7", event_types=["EVENT_RECORDED"])
        assert service.audit.verify_chain_integrity(told[-1].session_id) == (True, None)
    assert starts == [1, 2]
    assert len(operations) == len(set(operations)) == OPERATIONS
    assert [entry.correlation_id for entry in told if entry.correlation_id in operations] == operations
