from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import click
import pytest

from holdfast.cli.exits import Exit
from holdfast.cli.surroundings import Surroundings
from tests.cli.conftest import Run, entries

PROFILES = """
store = "nowhere"
actor = "somebody"

[profile.test]
store = "store"

[profile.test.recovery]
stale_seconds = 5
"""


def test_a_file_and_a_profile_of_it_are_chosen_by_flags(run: Run, store: Path):
    Path("other.toml").write_text(PROFILES, encoding="utf-8")
    assert run("list", "--config", "other.toml").exit_code == Exit.NO_STORE
    chosen = ("--config", "other.toml", "--profile", "test")
    assert run(*chosen, "list", "--json").data["total"] == 2
    settings = run(*chosen, "config", "show", "--changed", "--json").data["settings"]
    assert {one["name"]: one["value"] for one in settings} == {
        "store": "store",
        "actor": "somebody",
        "stale_seconds": 5,
    }
    assert "HOLDFAST_CONFIG" not in os.environ and "HOLDFAST_PROFILE" not in os.environ


def test_variables_choose_them_as_well_and_a_flag_wins(run: Run, store: Path, monkeypatch):
    Path("other.toml").write_text(PROFILES, encoding="utf-8")
    monkeypatch.setenv("HOLDFAST_CONFIG", "other.toml")
    monkeypatch.setenv("HOLDFAST_PROFILE", "test")
    assert run("list", "--json").data["total"] == 2
    assert run("list", "--profile", "tset").exit_code == Exit.USAGE
    assert os.environ["HOLDFAST_PROFILE"] == "test"


def test_a_profile_that_is_not_there_is_told(run: Run):
    Path("holdfast.toml").write_text(PROFILES, encoding="utf-8")
    refused = run("list", "--profile", "tset", "--json")
    assert refused.error["message"] == "there is no profile tset"
    assert refused.error["hint"].startswith("Did you mean test?")


def test_the_log_goes_to_standard_error_and_says_what_was_done(run: Run, store: Path):
    quiet = run("list", "--store", store)
    told = run("list", "-v", "--store", store)
    assert told.out == quiet.out and quiet.err == ""
    begins, ends = told.err.splitlines()
    assert begins.endswith("UTC INFO holdfast list begins")
    assert " INFO holdfast list ended after " in ends


def test_the_log_may_be_json_and_names_the_request(run: Run, store: Path):
    result = run("show", "WF-9", "-vv", "--log-format", "json", "--request-id", "r-1", "--store", store)
    lines = [line for line in result.err.splitlines() if line.startswith("{")]
    first, last = (json.loads(line) for line in (lines[0], lines[-1]))
    assert (first["level"], first["logger"], first["request_id"]) == ("info", "holdfast", "r-1")
    assert "failed (CheckpointNotFoundError)" in last["message"]


def test_an_exit_is_told_with_its_code(run: Run, store: Path):
    told = run("diff", "WF-1", "--exit-code", "-v", "--store", store)
    assert (told.exit_code, "ended with 5 after" in told.err) == (Exit.DIFFERENT, True)


def test_what_is_logged_is_not_obeyed(capsys):
    with Surroundings(verbose=1).entered("holdfast list"):
        logging.getLogger("holdfast").warning("\x1b[2J%s", "\x07")
    assert "\\x1b[2J\\x07" in capsys.readouterr().err
    assert logging.getLogger("holdfast").handlers == []


def test_without_flags_nothing_around_a_command_changes(capsys):
    before = logging.getLogger("holdfast").level
    with Surroundings().entered("holdfast list"):
        assert logging.getLogger("holdfast").level == before
    assert capsys.readouterr() == ("", "")


def test_a_request_is_named_in_everything_that_is_told_of_it(run: Run, store: Path):
    named = ("--request-id", "ticket-17", "--store", store)
    run("show", "WF-1", *named)
    run("fork", "WF-1@2", "WF-9", "--reason", "to try", *named)
    for type in ("STATE_READ", "REQUEST_MADE", "WORKFLOW_FORKED"):
        [told] = entries(run, store, type)
        assert told["correlation"] == "ticket-17"


def test_a_request_id_that_cannot_be_one_is_refused(run: Run, store: Path):
    assert run("list", "--request-id", " x ", "--store", store).exit_code == Exit.USAGE


def test_failures_leave_everything_as_it_was(monkeypatch):
    monkeypatch.delenv("HOLDFAST_PROFILE", raising=False)
    with (
        pytest.raises(click.UsageError),
        Surroundings(profile="x", verbose=2, log_format="text").entered("holdfast list"),
    ):
        raise click.UsageError("no")
    assert "HOLDFAST_PROFILE" not in os.environ
    assert logging.getLogger("holdfast").handlers == []
