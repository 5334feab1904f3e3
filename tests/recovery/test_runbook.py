"""Every command of the runbook is run, in its order, on a store where a night went wrong."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from holdfast.domain.state import WorkflowState
from tests.cli.conftest import Run
from tests.cli.conftest import run as run
from tests.cli.test_recover import PROGRAM
from tests.recovery.places import Place

PAGE = Path(__file__).parents[2] / "docs" / "runbook.md"
COMMANDS = re.findall(r"^\$ holdfast (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
#: Where something else than success is what the night calls for.
EXPECTED = {
    "doctor": Exit.CORRUPT,
    "validate --all --deep": Exit.CORRUPT,
    'recover kelp --reason "crash on node 7"': Exit.OLDER,
    "recover urchin --fresh": Exit.OLDER,
    # The damaged checkpoint cannot be compared.
    "replay kelp": Exit.PARTIAL,
}
PRINTED_LINES_MAX = 80


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Two workflows crashed; one lost its last record, the other its only keyframe."""
    place = Place("file", tmp_path)
    with place.open() as service:
        for name in ("kelp", "urchin"):
            for step in range(1, 5):
                state = WorkflowState(current_step=step, total_steps=9, messages=["a word"] * step)
                service.create_checkpoint(name, state, resume_handler="go_on")
            service.record_decision(name, "go on")
    place.damage_record("kelp", 4)
    place.damage_keyframe("urchin", 1)
    (tmp_path / "night_shift.py").write_text(PROGRAM)
    monkeypatch.setenv("HOLDFAST_STORE", place.url)
    monkeypatch.setenv("HOLDFAST_STALE_SECONDS", "0")
    return place


def test_every_command_of_the_runbook_does_what_it_says(run: Run, night: Place) -> None:
    assert len(COMMANDS) > 12
    wrong = []
    for command in COMMANDS:
        result = run("--store", night.url, *shlex.split(command))
        if result.exit_code != EXPECTED.get(command, Exit.DONE) or "Traceback" in result.err:
            wrong.append((command, result))
    assert wrong == [], "\n".join(f"{command}: {result}" for command, result in wrong)


def test_the_runbook_fits_on_a_page() -> None:
    assert len(PAGE.read_text("utf-8").splitlines()) <= PRINTED_LINES_MAX


def test_behind_a_last_event_that_was_cut_a_fork_goes_on(run: Run, night: Place) -> None:
    [events] = (night.folder / "store" / "events").glob("*/kelp*/*.jsonl")
    events.write_bytes(events.read_bytes()[:-20])
    refused = run("--store", night.url, "recover", "kelp")
    assert refused.exit_code == Exit.CORRUPT and events.name in refused.err and "Traceback" not in refused.err
    assert "last event" in PAGE.read_text("utf-8")
    assert run("--store", night.url, "fork", "kelp@2", "kelp-second-try").exit_code == Exit.DONE
    assert run("--store", night.url, "recover", "kelp-second-try").exit_code == Exit.DONE
