"""The sample of the page: as it stands, and killed with `kill -9` after each of its commits and run again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integrations.pages import KILLED, ROOT, run_sample, sample

ANSWER = "answer: Done: 70 to Ann. (4 items)"
ASKED = 'asked: pay {"to":"Ann","amount":70}'


def killed(code: str, folder: Path, *, every: int) -> list[dict]:
    command = [sys.executable, "-m", "tests.integrations.openai_agents_nursery", str(folder), str(every)]
    done = subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_sample_of_the_page_runs_as_it_stands(tmp_path):
    first = run_sample(sample("openai_agents"), tmp_path)
    assert (first.code, first.lines) == (0, [ASKED, "going on: waiting", ANSWER]), first.problem


@pytest.mark.parametrize("url", ["file:.holdfast", "sqlite:store.db"])
def test_the_sample_killed_after_any_commit_goes_on_and_pays_once(tmp_path, url):
    code = sample("openai_agents").replace("file:.holdfast", url)
    assert url in code
    runs = killed(code, tmp_path, every=1)
    for run in runs:
        assert (run["again_status"], run["again"][-1:]) == (0, [ANSWER]), run
        paid = Path(run["folder"], "paid.txt").read_text(encoding="utf-8")
        assert paid == "call-1: 70 to Ann\n", run
    assert [run["status"] for run in runs] == [KILLED] * (len(runs) - 1) + [0]
    assert len(runs) > 8
    # What was asked and answered before the kill is not asked again, and what was over is not begun again.
    assert {tuple(run["again"][:-1]) for run in runs} == {
        (ASKED, "going on: waiting"),
        ("going on: waiting",),
        ("going on: taken",),
        (),
    }


def test_without_the_vault_a_killed_run_asks_and_pays_again(tmp_path):
    code = sample("openai_agents").replace('kept = await vault.look("payment-1")', "kept = None")
    code = code.replace('"payment-1"', "RUN").replace("not in ledger.read()", "is not None")
    # Each process knows only of runs of its own.
    code = "import uuid\nRUN = str(uuid.uuid4())\n" + code
    paid = [
        len(Path(run["folder"], "paid.txt").read_text(encoding="utf-8").splitlines())
        for run in killed(code, tmp_path, every=6)
    ]
    assert max(paid) == 2


def test_without_its_session_a_run_that_is_taken_again_leaves_its_items_twice(tmp_path):
    code = sample("openai_agents").replace("again=True, session=session", "again=True")
    answers = {run["again"][-1] for run in killed(code, tmp_path, every=3)}
    assert answers > {ANSWER}
