"""`holdfast recover --exec`: no shell, the recovered workflow told, and an end that scripts can trust."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.cli import recover_exec
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run

_KEEP = """
import json, os, sys
names = ("HOLDFAST_STORE", "HOLDFAST_WORKFLOW_ID", "HOLDFAST_CHECKPOINT_ID")
told = {"env": [os.environ[name] for name in names], "args": sys.argv[1:], "in": json.load(sys.stdin)}
open("told.json", "w").write(json.dumps(told))
print("talk of the command")
"""


def python(code: str, *args: str) -> str:
    """Write a command line that runs some Python."""
    return shlex.join([sys.executable, "-c", code, *args])


def test_the_command_is_told_what_was_recovered(run: Run, store: Path):
    result = run("recover", "WF-1", "--store", store, "--exec", python(_KEEP, "a b", "$HOME;x"))
    told = json.loads(Path("told.json").read_text())
    assert result.exit_code == Exit.DONE and "Recovered WF-1" in result.out
    assert told["env"] == [f"file:{store}", "WF-1", "WF-1@3"]
    assert told["args"] == ["a b", "$HOME;x"]
    assert told["in"]["success"] and told["in"]["workflow_id"] == "WF-1"


def test_what_it_prints_does_not_get_into_the_json(run: Run, store: Path):
    result = run("recover", "WF-1", "--store", store, "--json", "--exec", python(_KEEP))
    assert result.data["exec_exit_code"] == 0 and result.data["checkpoint_used"] == "WF-1@3"
    assert run("recover", "WF-1", "--store", store, "--json").data["exec_exit_code"] is None


@pytest.mark.parametrize("code", ["raise SystemExit(4)", "import os; os.kill(os.getpid(), 9)"])
def test_a_command_that_fails_ends_it_as_a_failed_run(run: Run, store: Path, code: str):
    result = run("recover", "WF-1", "--store", store, "--exec", python(code))
    assert result.exit_code == Exit.RUN_FAILED and "Recovered WF-1" in result.out
    assert "the command of --exec failed" in result.err and "Traceback" not in result.err
    told = run("recover", "WF-1", "--store", store, "--json", "--exec", python(code))
    assert told.data["exec_exit_code"] and told.error["code"] == "exec_failed"


@pytest.mark.parametrize(
    ("line", "said"), [("no-such-program -x", "no such program"), ("'", "read"), (" ", "empty")]
)
def test_what_cannot_be_run_is_found_before_anything_is_done(run: Run, store: Path, line: str, said: str):
    result = run("recover", "WF-1", "--store", store, "--exec", line)
    assert result.exit_code == Exit.USAGE and said in result.err
    assert "WORKFLOW_RECOVERED" not in run("events", "WF-1", "--store", store, "--json").out


def test_a_plan_runs_nothing_and_says_what_it_would(run: Run, store: Path):
    line = python(_KEEP)
    result = run("recover", "WF-1", "--store", store, "--plan", "--exec", line)
    assert "would be run" in result.out and not Path("told.json").exists()
    told = run("recover", "WF-1", "--store", store, "--plan", "--json", "--exec", line).data
    assert told["exec"] == shlex.split(line)


def test_nothing_is_run_where_nothing_was_recovered(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.create_checkpoint("WF-1", {"n": 5}, type="workflow_complete")
    result = run("recover", "WF-1", "--store", store, "--exec", python(_KEEP))
    assert result.exit_code == Exit.REFUSED and not Path("told.json").exists()


def test_the_command_may_be_one_of_ours_and_looks_into_the_same_store(run: Run, store: Path):
    line = shlex.join([sys.executable, "-m", "holdfast", "show", "WF-1"])
    assert run("recover", "WF-1", "--store", store, "--json", "--exec", line).data["exec_exit_code"] == 0


@pytest.mark.parametrize("given", ["store", "file:store", "file:../{}/store"])
def test_the_command_finds_the_store_from_any_folder(run: Run, store: Path, given: str):
    Path("holdfast.toml").write_text(f'store = "{given.format(store.parent.name)}"\n')
    assert run("recover", "WF-1", "--exec", python(_KEEP)).exit_code == Exit.DONE
    [place, *_] = json.loads(Path("told.json").read_text())["env"]
    assert place == run("list", "--json").data["store"] == f"file:{store}"


@pytest.mark.parametrize("url", ["postgresql://me:secret@db.example/x", "memory:"])
def test_what_is_no_path_is_passed_on_as_it_is(url: str):
    assert recover_exec._anywhere(url) == url


def test_a_database_in_a_file_is_a_path_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert recover_exec._anywhere("sqlite:a.db") == f"sqlite:{tmp_path / 'a.db'}"
    assert recover_exec._anywhere("file:///srv/x") == "file:/srv/x"
