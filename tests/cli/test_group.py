from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from holdfast import __version__
from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, did_you_mean, holdfast
from tests.cli.conftest import COMMANDS, Run, load

HEAVY = {
    "asyncio",
    "cryptography",
    "opentelemetry",
    "prometheus_client",
    "psycopg",
    "rich",
    "starlette",
    "uvicorn",
    "backports.zstd",
    "cbor2",
    "concurrent",
    "msgspec",
    "ormsgpack",
    "pydantic",
    "sqlite3",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_in_the_list_is_the_first_line_of_the_commands_own_help(name):
    command = load(name)
    assert command.name == name.split()[-1]
    assert (command.help or "").splitlines()[0] == COMMANDS[name][1]


def test_a_name_that_is_no_command_is_none():
    for name in ("", "audit"):
        commands = load(name)
        assert isinstance(commands, click.Group)
        assert commands.get_command(click.Context(commands), "nothing") is None
        listed = commands.list_commands(click.Context(commands))
        below = [
            known.removeprefix(name).strip() for known in COMMANDS if known.startswith(f"{name} ".lstrip())
        ]
        assert listed == sorted(one for one in below if one and " " not in one)


def loaded_by(*args: str) -> set[str]:
    """Run the command line in a fresh interpreter and name the modules it has loaded."""
    program = (
        "import sys; from holdfast.cli.main import main; main(sys.argv[1:]);"
        "print('MODULES', *sys.modules, file=sys.stderr)"
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    result = subprocess.run(
        [sys.executable, "-c", program, *args], capture_output=True, text=True, check=True, env=env
    )
    return set(result.stderr.partition("MODULES ")[2].split())


@pytest.mark.parametrize(
    "args", [("--help",), ("--version",), *((*name.split(), "--help") for name in COMMANDS)]
)
def test_help_waits_for_nothing_heavy(args):
    loaded = loaded_by(*args)
    assert loaded & HEAVY == set()
    assert not any(name.startswith(("holdfast.adapters", "holdfast.application")) for name in loaded)


def test_help_loads_no_command():
    modules = {f"holdfast.cli.{module}" for module, _ in COMMANDS.values()}
    assert loaded_by("--help") & modules == set()
    assert loaded_by("audit", "--help") & modules == {"holdfast.cli.audit"}


def test_a_group_without_a_command_shows_its_help(run: Run):
    result = run("audit")
    assert result.exit_code == 2 and "witness" in result.out and result.err == ""
    assert "Did you mean verify?" in run("audit", "verfy").err


def test_the_version_is_printed(run: Run):
    assert run("--version").out == f"holdfast {__version__}\n"


def test_shared_options_are_taken_before_and_after_the_command(run: Run, store: Path):
    for args in (("--store", store, "--json", "list"), ("list", "--store", store, "--json")):
        assert run(*args).data["total"] == 2


def test_the_later_store_wins(run: Run, store: Path):
    assert run("--store", "elsewhere", "list", "--store", store).exit_code == 0
    assert run("--store", store, "list", "--store", "elsewhere").exit_code == 10


def test_the_store_may_come_from_the_environment_or_a_file_and_a_flag_wins(
    run: Run, store: Path, monkeypatch
):
    Path("holdfast.toml").write_text(f"store = {str(store)!r}\n")
    assert run("list").exit_code == 0
    monkeypatch.setenv("HOLDFAST_STORE", "elsewhere")
    assert run("list").exit_code == 10
    assert run("list", "--store", store).exit_code == 0


def test_the_default_store_is_in_this_folder(run: Run):
    assert run("init").exit_code == 0
    assert Path(".holdfast/holdfast.json").is_file()
    assert run("list").exit_code == 0


def test_a_call_without_options_names_no_store():
    call = Call.of(click.Context(holdfast))
    assert call.store is None
    assert not call.output.as_json and not call.output.quiet


def test_suggestions_are_near_ones_only():
    assert did_you_mean("WF-2026-01", ["WF-2026-001", "other"]) == "Did you mean WF-2026-001?"
    assert did_you_mean("WF", ["abc"]) == ""


def test_who_only_got_the_case_wrong_is_understood():
    assert did_you_mean("wf-1", ["WF-11", "WF-1", "WF-2"]) == "Did you mean WF-1?"
    assert did_you_mean("wf-1", ["WF-1", "Wf-1"]) == "Did you mean WF-1 or Wf-1?"
    assert did_you_mean("wf1", ["WF-1", "other"]) == "Did you mean WF-1?"


#: What each command needs to have something to say about a store.
ARGUMENTS: dict[str, tuple[str, ...]] = {
    "approve": ("--list",),
    "audit anchor": (),
    "audit export": ("export",),
    "audit log": ("--limit", "1"),
    "audit proof": ("s-1#2",),
    "audit prune": ("--older-than-days", "400"),
    "audit register": (),
    "audit report": ("--session", "s-1", "--out", "report.html"),
    "audit show": ("s-1#2",),
    "audit verify": (),
    "completion": ("bash",),
    "config path": (),
    "config set": ("retain_days", "7"),
    "config show": (),
    "copy": ("store", "copied"),
    "demo": (),
    "diff": ("WF-1@2",),
    "doctor": (),
    "erase": ("--workflow", "WF-2", "--reason", "asked for", "--yes"),
    "events": ("WF-1", "--limit", "1"),
    "export": ("WF-1", "--out", "archive.holdfast"),
    "fork": ("WF-1@event:2", "WF-9"),
    "hold list": (),
    "hold place": ("--reason", "case 17"),
    "hold release": ("HOLD", "--reason", "case closed"),
    "import archive": ("archive.holdfast", "--dry-run"),
    "init": (),
    "list": (),
    "migrate": ("--dry-run",),
    "prune": ("--dry-run",),
    "quarantine list": (),
    "recover": ("WF-1",),
    "replay": ("WF-1",),
    "report": ("WF-1",),
    "reveal": ("WF-9", "--resolver", "env:PATH", "--reason", "case 17"),
    "session hand-off": ("s-1",),
    "session list": (),
    "session resume": ("s-1",),
    "session show": ("s-1",),
    "show": ("WF-1",),
    "stats": (),
    "subject declare": ("WF-1", "alice"),
    "subject export": ("alice", "--out", "subject"),
    "token create": ("on-call", "--role", "operator"),
    "token list": (),
    "validate": (),
    "version": (),
}


#: What must have happened before.
BEFORE: dict[str, tuple[tuple[str, ...], ...]] = {
    "audit proof": (("audit", "anchor"),),
    "hold release": (("hold", "place", "--reason", "case 17"),),
    "import archive": (("export", "WF-1", "--out", "archive.holdfast"),),
    "reveal": (("fork", "WF-1@1", "WF-9", "--set", "/context/password=hunter2"),),
    "session show": (("session", "hand-off", "s-1"),),
    "subject export": (("subject", "declare", "WF-1", "alice"),),
}

GROUPS = {name for name in COMMANDS if isinstance(load(name), click.Group)}


#: Of use with an encrypted store only; their own tests have one.
ENCRYPTED = {name for name in COMMANDS if name.startswith("keys ")}

#: Of use where something is damaged; their own tests see to that.
DAMAGED = {"quarantine drop", "quarantine release", "quarantine show"}


#: Of use with a program, or with a workflow that runs; their own tests see to that.
RUNNING = {"cancel", "checkpoint", "pause", "resume", "run", "watch"}


#: Of use with what another system kept, with a client, or with a token; their own tests see to that.
FOREIGN = {"import langgraph-postgres", "import langgraph-sqlite", "mcp", "serve", "token revoke"}


# A group prints nothing itself, and a witness has no store.
@pytest.mark.sweep
@pytest.mark.parametrize(
    "name", sorted(COMMANDS.keys() - GROUPS - ENCRYPTED - DAMAGED - RUNNING - FOREIGN - {"audit witness"})
)
def test_every_command_speaks_json(run: Run, store: Path, name):
    # Only `copy` has two stores, and takes them as arguments.
    named = () if name == "copy" else ("--store", store)
    arguments = ARGUMENTS[name]
    for words in BEFORE.get(name, ()):
        told = run(*words, "--json", *named).data
        arguments = tuple(told["id"] if word == "HOLD" else word for word in arguments)
    result = run(*name.split(), *arguments, "--json", *named)
    assert (result.exit_code, result.err) == (0, "")
    assert isinstance(result.data, dict)


def test_an_empty_store_is_not_the_usual_one(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch):
    result = run("list", "--store", "")
    assert result.exit_code == Exit.USAGE and "--store is empty" in result.err
    monkeypatch.setenv("HOLDFAST_STORE", "")
    result = run("list")
    assert result.exit_code == Exit.USAGE and "HOLDFAST_STORE is empty" in result.err


def test_nobody_is_asked_whether_they_meant_what_they_said():
    assert did_you_mean("kelp", ["kelp"]) == ""
    assert did_you_mean("kelp", ["kelp", "kelp2"]) == "Did you mean kelp2?"
