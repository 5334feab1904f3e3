"""The sample of the page about Pydantic AI, killed with `kill -9` after its commits and run again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from tests.integrations.pages import KILLED, ROOT, run_sample, sample

SAMPLE = sample("pydantic_ai")
DURABLE = "capabilities=[HoldfastDurability()]"
#: On other days than those of a campaign: after which commit a kill comes first, by the store.
FIRST = {"file": 2, "sqlite": 4}


def done_in(lines: list[str]) -> list[str]:
    """Answer what models and tools did."""
    return [line for line in lines if line.startswith(("model:", "tool:"))]


@pytest.mark.parametrize("scheme", FIRST)
def test_a_killed_sample_goes_on_and_repeats_nothing(scheme: str, tmp_path: Path, campaign: bool) -> None:
    first_kill, every = (1, 1) if campaign else (FIRST[scheme], 5)
    code = SAMPLE.replace("file:.holdfast", f"{scheme}:.holdfast")
    command = [sys.executable, "-m", "tests.integrations.pydantic_ai_forked"]
    command += [str(tmp_path), str(first_kill), str(every)]
    ran = subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True, check=True)
    *killed, unkilled = [json.loads(line) for line in ran.stdout.splitlines()]
    (code_of_all, all_lines), _ = unkilled
    assert code_of_all == 0 and len(done_in(all_lines)) == 7
    assert all_lines[-1] == "14 coins after 4 requests"
    # Each operation is a commit, and so are the beginning and the end.
    assert len(killed) > 7 // every
    for (first_code, first), (second_code, second) in killed:
        assert (first_code, second_code) == (KILLED, 0), ran.stderr
        assert second[-1] == all_lines[-1]
        assert done_in(first) + done_in(second) == done_in(all_lines)


def test_without_the_capability_a_killed_sample_starts_over(tmp_path: Path) -> None:
    assert DURABLE in SAMPLE
    code = SAMPLE.replace(DURABLE, "capabilities=[]")
    first, second = run_sample(code, tmp_path, kill_after=1), run_sample(code, tmp_path)
    assert first.code == KILLED and second.code == 0, second.problem
    assert done_in(first.lines) == done_in(second.lines) and len(done_in(second.lines)) == 7


def test_the_trail_and_the_journal_tell_that_a_run_went_on(tmp_path: Path) -> None:
    run_sample(SAMPLE, tmp_path, kill_after=4)
    run_sample(SAMPLE, tmp_path)
    with holdfast.open(f"file:{tmp_path}/.holdfast") as service:
        events = service.events("order-7")
        starts = [event.data["attempt"] for event in events if event.type == "AGENT_STARTED"]
        operations = [event.step_id for event in events if "operation" in event.data]
        told = service.audit.query_events(workflow="order-7", event_types=["EVENT_RECORDED"])
        assert service.audit.verify_chain_integrity(told[-1].session_id) == (True, None)
    assert starts == [1, 2]
    assert len(operations) == len(set(operations)) == 7
    assert [entry.correlation_id for entry in told if entry.correlation_id in operations] == operations
