"""Whoever changes something can look first, need not be asked, and can say why: on every command."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from holdfast import bootstrap
from holdfast.cli.changing import Change, tell_plan
from holdfast.cli.exits import Exit
from holdfast.cli.group import HELP_WIDTH, Commands
from holdfast.cli.output import Output
from tests.cli.conftest import COMMANDS, Run, damage_record, entries, load

FLAGS = {"--dry-run", "--yes", "--reason"}

#: What changes something in a store, or what looks after it.
CHANGING = {
    "approve",
    "audit anchor",
    "audit prune",
    "audit register",
    "cancel",
    "checkpoint",
    "copy",
    "doctor",
    "erase",
    "fork",
    "hold place",
    "hold release",
    "import archive",
    "import langgraph-postgres",
    "import langgraph-sqlite",
    "keys new",
    "keys rotate",
    "migrate",
    "pause",
    "prune",
    "quarantine drop",
    "quarantine release",
    "recover",
    "resume",
    "run",
    "session hand-off",
    "session resume",
    "subject declare",
    "token create",
    "token revoke",
    "validate",
}

#: What only looks at a store, and what it says goes to the screen or to files of one's own.
LOOKING = {
    "audit export",
    "audit log",
    "audit proof",
    "audit report",
    "audit show",
    "audit verify",
    "completion",
    "config path",
    "config show",
    "diff",
    "events",
    "export",
    "hold list",
    "keys check",
    "keys list",
    "list",
    "quarantine list",
    "quarantine show",
    "replay",
    "report",
    "reveal",
    "session list",
    "session show",
    "show",
    "stats",
    "subject export",
    "token list",
    "version",
    "watch",
}

#: What begins something, serves it to others who say why themselves, or is about no store.
OTHERS = {"audit witness", "config set", "demo", "init", "mcp", "serve"}

GROUPS = {name for name in COMMANDS if isinstance(load(name), Commands)}


def words(name: str) -> set[str]:
    return {word for option in load(name).params if isinstance(option, click.Option) for word in option.opts}


def test_every_command_is_known_to_change_something_or_not():
    assert COMMANDS.keys() - GROUPS == CHANGING | LOOKING | OTHERS
    assert not (CHANGING & LOOKING or CHANGING & OTHERS or LOOKING & OTHERS)


@pytest.mark.parametrize("name", sorted(CHANGING))
def test_what_changes_something_can_be_tried_confirmed_and_explained(name):
    assert FLAGS - words(name) == set()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_speaks_json_and_its_help_has_an_example_and_fits(run: Run, name):
    assert "--json" in words(name)
    text = run(*name.split(), "--help").out
    assert f"Example:\n    holdfast {name}" in text
    assert max(map(len, text.splitlines())) <= HELP_WIDTH


# -- a dry run changes nothing -----------------------------------------------------------------

TRIED: dict[str, tuple[str, ...]] = {
    "audit anchor": (),
    "audit prune": ("--older-than-days", "400"),
    "erase": ("--workflow", "WF-2", "--reason", "asked for"),
    "fork": ("WF-1@event:2", "WF-9", "--set", "/context/tone=dry"),
    "hold place": ("--workflow", "WF-1", "--reason", "case 17"),
    "migrate": (),
    "prune": ("--keep-last", "1", "--keep-days", "0"),
    "recover": ("WF-1",),
    "session hand-off": ("s-1",),
    "session resume": ("s-1",),
    "subject declare": ("WF-1", "ann"),
    "validate": ("WF-1@2", "--quarantine"),
}


@pytest.mark.parametrize("name", sorted(TRIED))
def test_a_dry_run_says_so_and_changes_nothing(run: Run, store: Path, name):
    if name == "validate":
        damage_record(store, 2)
    # Opened once: the journal of what filled the store is settled by whoever comes next.
    run("list", "--store", store)
    before = told(run, store)
    result = run(*name.split(), *TRIED[name], "--dry-run", "--store", store)
    assert result.exit_code == (Exit.CORRUPT if name == "validate" else 0), result.err
    assert told(run, store) - before <= {"CHECKPOINT_VALIDATED", "SESSION_STARTED", "STATE_READ"}
    told_in_json = run(*name.split(), *TRIED[name], "--dry-run", "--json", "--store", store)
    assert isinstance(told_in_json.data, dict)


def told(run: Run, store: Path) -> set[str]:
    """Tell what the trail tells of, by its types."""
    with bootstrap.open(str(store), read_only=True, session="looking") as service:
        return {event.type for event in service.audit.query_events(limit=1000)}


def test_a_plan_is_told_to_people_and_to_programs(capsys):
    tell_plan(Output(), "Would do it", workflow_id="WF-1")
    assert capsys.readouterr() == ("Would do it\n", "Nothing was changed.\n")
    tell_plan(Output(as_json=True), "Would do it", workflow_id="WF-1")
    assert capsys.readouterr().out == '{\n  "dry_run": true,\n  "workflow_id": "WF-1"\n}\n'


# -- why ---------------------------------------------------------------------------------------

EXPLAINED: dict[str, tuple[str, ...]] = {
    "audit anchor": (),
    "fork": ("WF-1@2", "WF-9"),
    "migrate": ("--apply",),
    "prune": ("--keep-last", "1", "--keep-days", "0", "--yes"),
    "recover": ("WF-1",),
    "session hand-off": ("s-1",),
    "session resume": ("s-1", "--as", "s-2"),
    "subject declare": ("WF-1", "ann"),
}


@pytest.mark.parametrize("name", sorted(EXPLAINED))
def test_the_reason_is_told_before_what_it_is_about_and_under_one_id(run: Run, store: Path, name):
    done = run(*name.split(), *EXPLAINED[name], "--reason", "because of the tide", "--store", store)
    assert done.exit_code == 0, done.err
    [asked] = entries(run, store, "REQUEST_MADE")[:1]
    assert asked["data"]["command"] == name and asked["correlation"].startswith("cli-")
    shown = run("audit", "show", f"{asked['session']}#{asked['seq']}", "--json", "--store", store).out
    assert "because of the tide" in shown


def test_a_reason_that_says_nothing_is_refused(run: Run, store: Path):
    for reason in ("", "  ", "x" * 501):
        refused = run("fork", "WF-1@2", "WF-9", "--reason", reason, "--store", store)
        assert refused.exit_code == Exit.USAGE
        assert "a reason has 1 to 500 characters" in refused.err


def test_without_a_trail_a_reason_is_told_nobody(run: Run, store: Path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_AUDIT", "false")
    assert run("fork", "WF-1@2", "WF-9", "--reason", "to try", "--store", store).exit_code == 0


def test_nobody_is_asked_where_that_was_forbidden(run: Run, store: Path, monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    args = ("erase", "--workflow", "WF-2", "--reason", "asked for", "--store", store)
    refused = run(*args, "--no-input")
    assert refused.exit_code == Exit.REFUSED and "needs --yes" in refused.err
    monkeypatch.setenv("HOLDFAST_NO_INPUT", "1")
    assert run(*args).exit_code == Exit.REFUSED


def test_a_change_without_a_reason_has_an_empty_one():
    assert Change().why == ""
