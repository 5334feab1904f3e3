from __future__ import annotations

from pathlib import Path

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run


def test_what_a_session_left_is_shown_and_the_look_is_told(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.sessions.hand_off(
            "s-1",
            {"id": "critic", "version": "2"},
            "First line.\nSecond \x1b[31m line.",
            {"n": 1},
            context_usage=0.83,
        )
    shown = run("session", "show", "s-1", "--store", store).out
    for part in ("handed_off", "critic 2", "83 % full", "WF-1", "First line.", "\\x1b[31m", '"n": 1'):
        assert part in shown
    data = run("session", "show", "s-1", "--json", "--store", store).data
    assert data["session_context"]["payload"] == {"n": 1}
    assert data["session"]["status"] == "handed_off"
    told = run("audit", "log", "--type", "STATE_READ", "--json", "--store", store).out
    assert '"session": "s-1"' in told


def test_a_session_that_nobody_opened_is_shown_by_its_trail(run: Run, store: Path):
    shown = run("session", "show", "s-1", "--store", store).out
    assert "open" in shown and "WF-1" in shown


def test_what_is_no_session_is_not_found(run: Run, store: Path):
    missing = run("session", "show", "s-404", "--json", "--store", store)
    assert missing.exit_code == Exit.NOT_FOUND
    assert missing.error["code"] == "checkpoint_not_found"
