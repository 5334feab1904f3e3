"""What the comparison with another executor measures, and that it hides nothing."""

from __future__ import annotations

import json
import multiprocessing
import re
import signal
from pathlib import Path

import pytest

from benchmarks.execution import KILL_AT, compared, strays
from benchmarks.peers import steps as peers_steps
from benchmarks.peers.steps import STEPS, Asked, Steps

REQUIREMENTS = sorted(Path(peers_steps.__file__).parent.glob("*_requirements.txt"))


def _asked(folder: Path, kill_at: int | None = None) -> Asked:
    return Asked("memory:", str(folder / "journal"), 0.0, kill_at, resume=False)


def _go_on_until(asked: Asked) -> None:
    steps = Steps(asked)
    for number in range(STEPS):
        steps.step(number)


@pytest.mark.parametrize("path", REQUIREMENTS, ids=lambda path: path.stem)
def test_every_package_of_a_peer_is_pinned(path):
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert lines and all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in lines)


def test_a_report_is_one_line_about_the_time_between_entries(tmp_path, capsys):
    steps = Steps(_asked(tmp_path))
    steps.begin()
    answers = [steps.step(number) for number in range(5)]
    steps.report(end_seconds=steps.since(), more="of it")
    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert [len(answer["text"]) for answer in answers] == [2_000] * 5
    assert (told["steps"], told["more"]) == (5, "of it")
    assert 0 <= told["p50_seconds"] <= told["p95_seconds"]
    assert 0 <= told["first_seconds"] <= told["end_seconds"] < told["first_since_start_seconds"]


def test_entries_survive_the_kill_of_their_process(tmp_path):
    process = multiprocessing.get_context("spawn").Process(target=_go_on_until, args=(_asked(tmp_path, 3),))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert (tmp_path / "journal").read_text().split() == ["0", "1", "2", "3"]


def test_the_step_that_was_killed_is_no_stray():
    assert strays([*range(KILL_AT + 1), *range(KILL_AT, STEPS)]) == (0, 0)


def test_a_committed_step_that_is_entered_again_is_a_stray():
    assert strays([*range(KILL_AT + 1), *range(KILL_AT - 1, STEPS)]) == (1, 0)


def test_a_step_that_nobody_enters_is_lost():
    assert strays([*range(KILL_AT + 1), *range(KILL_AT, STEPS - 2)]) == (0, 2)


def test_a_bar_that_is_missed_is_told_as_missed():
    assert compared("step", "told", 2.9, 3.0).held is False
    assert compared("step", "told", 3.0, 3.0).held is True
    assert compared("step", "told", 3.0).held is None
