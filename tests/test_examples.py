"""The examples do what they say: each is run for real, killed for real, and run again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.sizes import daily

EXAMPLES = Path(__file__).parents[1] / "examples"
#: Runs the code review, and pulls the plug after the merge and before that can be recorded.
MERGE_AND_DIE = """
import os, signal, sys
import code_review as example
merge = example.merge_change
def merge_and_die(key):
    merge(key)
    os.kill(os.getpid(), signal.SIGKILL)
example.merge_change = merge_and_die
example.main()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "HOLDFAST_STORE": str(tmp_path / "store"), "MERGES": str(tmp_path / "merges.txt")}


def run(environment: dict[str, str], name: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_until(environment: dict[str, str], name: str, words: str, *arguments: str) -> list[str]:
    """Run an example, kill it once it has said certain words, and answer all it said."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = []
        for line in process.stdout:
            said.append(line.rstrip())
            if words in line:
                process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    return said


def steps_done(lines: list[str]) -> list[str]:
    return [line.removesuffix(": done") for line in lines if line.endswith(": done")]


def report_of(out: str) -> str:
    return out[out.index("\n\n") : out.rindex("\n\n")]


@pytest.mark.sweep
@pytest.mark.parametrize(
    "words", daily(["research[roofs]: done", "judge: done", "judge#2: done"], ["judge: done"])
)
def test_the_research_team_is_killed_and_ends_as_if_it_had_not_been(environment, tmp_path, words):
    undisturbed = {**environment, "HOLDFAST_STORE": str(tmp_path / "other"), "THINKING_SECONDS": "0"}
    expected = run(undisturbed, "research_team")
    before = run_until({**environment, "THINKING_SECONDS": "0.05"}, "research_team", words)
    after = run({**environment, "THINKING_SECONDS": "0"}, "research_team")
    done = steps_done(after.splitlines())
    assert "going on with a run that was begun before" in after
    assert not set(steps_done(before)) & set(done)
    assert sorted(steps_done(before) + done) == sorted(steps_done(expected.splitlines()))
    assert report_of(after) == report_of(expected)
    # What it used up is told as if nothing had happened, too.
    assert after.splitlines()[-1].rpartition(";")[2] == expected.splitlines()[-1].rpartition(";")[2]


@pytest.mark.sweep
def test_the_research_team_that_is_done_is_only_told_of(environment):
    environment["THINKING_SECONDS"] = "0"
    run(environment, "research_team")
    again = run(environment, "research_team")
    assert steps_done(again.splitlines()) == []
    assert "12 results were there, 0 agents ran" in again


@pytest.mark.sweep
@pytest.mark.parametrize("word", daily(["approve", "deny"], ["deny"]))
def test_the_code_review_waits_for_an_answer_that_is_given_while_nothing_runs(environment, tmp_path, word):
    assert "waiting for merge: merge" in run(environment, "code_review")
    run(environment, "code_review", word, "ann")
    ended = run(environment, "code_review")
    assert "completed: 5 results were there, 1 agents ran" in ended
    assert f"'merged': {word == 'approve'}, 'by': 'ann'" in ended
    merges = tmp_path / "merges.txt"
    assert merges.exists() == (word == "approve")


@pytest.mark.sweep
def test_a_merge_that_nobody_saw_end_does_not_happen_twice(environment, tmp_path):
    run(environment, "code_review")
    run(environment, "code_review", "approve", "ann")
    died = subprocess.run(
        [sys.executable, "-c", MERGE_AND_DIE], cwd=EXAMPLES, env=environment, capture_output=True, check=False
    )
    assert died.returncode == -signal.SIGKILL
    merges = (tmp_path / "merges.txt").read_text("utf-8").split()
    assert len(merges) == 1
    assert f"'revision': '{merges[0][-7:]}'" in run(environment, "code_review")
    assert (tmp_path / "merges.txt").read_text("utf-8").split() == merges


@pytest.mark.sweep
def test_the_nightly_batch_goes_on_where_it_was_killed(environment, campaign: bool):
    count = 1_000 if campaign else 20
    run_until(environment, "nightly_batch", f"{count // 2:,} of", str(count), "night")
    ended = run(environment, "nightly_batch", str(count), "night")
    assert f"{count:,} completed" in ended
    assert int(ended[: ended.index(" were done before")].split()[-1].replace(",", "")) >= count // 2
    again = run(environment, "nightly_batch", str(count), "night")
    assert f"{count:,} were done before, 0 went on" in again


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("research_team", "completed", 0),
        ("code_review", "waiting", Exit.WAITING),
        ("nightly_batch", "completed", 0),
    ],
)
def test_each_example_runs_from_the_command_line(environment, name: str, status: str, code: int):
    command = [sys.executable, "-m", "holdfast", "run", f"{EXAMPLES / name}.py:team", "--id", "one"]
    done = subprocess.run(
        [*command, "--no-wait", "--json"],
        env={**environment, "THINKING_SECONDS": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)["status"] == status
