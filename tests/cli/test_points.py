"""Points between checkpoints are found, or what was meant is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from holdfast.cli.points import app_for, app_named, is_point
from tests.cli.conftest import Run

APP = """
from holdfast.application.app import App

app = App()


@app.reducer("TASK_ASSIGNED")
def assigned(fields, event):
    return {**fields, "context": {**fields["context"], "assigned": event.data["task"]}}
"""


@pytest.fixture
def app(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program with a reducer of its own, in the working directory."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "points_app.py").write_text(APP)
    return "points_app:app"


def test_a_point_is_told_from_a_checkpoint():
    assert [
        is_point(name) for name in ("WF@event:1", "WF@time:2026-01-11T14:30:00Z", "WF@1", "WF", "abcd")
    ] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_a_workflow_that_is_not_there_is_guessed(run: Run, store: Path):
    result = run("show", "WF-3@event:1", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND
    assert "Did you mean WF-2 or WF-1" in result.err or "Did you mean WF-1 or WF-2" in result.err


def test_a_point_that_is_not_there_is_told(run: Run, store: Path):
    result = run("show", "WF-1@event:99", "--store", store, "--json")
    assert result.exit_code == Exit.NOT_FOUND
    assert result.error["message"] == "there is no such point, the last event is 5"
    assert result.error["place"] == "WF-1@event:99"


@pytest.mark.parametrize("name", ["WF-1@time:yesterday", "WF-1@time:2026-01-11T14:30:00"])
def test_a_time_that_is_none_is_refused(run: Run, store: Path, name: str):
    result = run("show", name, "--store", store)
    assert result.exit_code == Exit.USAGE
    assert "2026-01-11T14:30:00Z" in result.err


def test_commands_that_need_a_checkpoint_say_so(run: Run, store: Path):
    result = run("validate", "WF-1@event:2", "--store", store)
    assert result.exit_code == Exit.USAGE
    assert "a checkpoint is needed" in result.err


def test_the_program_is_loaded_only_where_reducers_are_needed(app: str):
    assert app_for(None, "WF@1", None) is None
    assert app_for(app, "WF@1") is not None
    assert app_named(None) is None


def test_the_program_of_the_configuration_is_used(run: Run, store: Path, app: str):
    Path("holdfast.toml").write_text(f'[recovery]\napp = "{app}"\n')
    shown = run("show", "WF-1@event:4", "--state=/context", "--store", store, "--json").data
    assert shown["state"] == {"a": 1, "assigned": "T-1"}


def test_reducers_of_the_program_lead_to_a_point(run: Run, store: Path, app: str):
    plain = run("show", "WF-1@event:4", "--state=/context", "--store", store).out
    assert json.loads(plain) == {"a": 1}
    own = run("show", "WF-1@event:4", "--state=/context", "--app", app, "--store", store).out
    assert json.loads(own) == {"a": 1, "assigned": "T-1"}
