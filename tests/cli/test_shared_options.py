from __future__ import annotations

from pathlib import Path

import click
import pytest

from holdfast.cli.shared_options import VARIABLES, command_options, root_options
from holdfast.config_sources import _OTHER_VARIABLES
from tests.cli.conftest import COMMANDS, Run, load


def words(options: list[click.Parameter]) -> set[str]:
    return {word for option in options for word in option.opts}


def test_before_and_after_a_command_the_same_options_are_taken():
    assert words(command_options(set())) == words(root_options())


def test_a_word_that_a_command_has_a_meaning_for_stays_its_own():
    assert words(command_options({"--config"})) == words(root_options()) - {"--config"}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_word_means_two_things_after_a_command(name):
    given = [word for option in load(name).params if isinstance(option, click.Option) for word in option.opts]
    assert len(given) == len(set(given))


def test_no_variable_of_a_flag_is_taken_for_a_setting():
    assert set(VARIABLES.values()) <= _OTHER_VARIABLES


def test_variables_stand_for_flags_and_flags_win(run: Run, store: Path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_STORE", str(store))
    monkeypatch.setenv("HOLDFAST_OUTPUT", "json")
    assert run("list").data["total"] == 2
    assert run("-o", "table", "list").out.startswith("WORKFLOW")
    assert run("list", "--output", "table").out.startswith("WORKFLOW")
    monkeypatch.setenv("HOLDFAST_OUTPUT", "csv")
    assert run("--json", "list").data["total"] == 2
    monkeypatch.setenv("HOLDFAST_COLOR", "always")
    assert "\x1b" in run("list", "-o", "table").out
    assert "\x1b" not in run("list", "-o", "table", "--color", "never").out


def test_the_last_word_about_the_output_counts(run: Run, store: Path):
    assert run("list", "--json", "-o", "csv", "--store", store).out.startswith("workflow,")
    assert run("list", "-o", "csv", "--json", "--store", store).data["total"] == 2
    assert run("--json", "list", "-o", "csv", "--store", store).out.startswith("workflow,")


@pytest.mark.parametrize("args", [("-o", "json"), ("--output", "json"), ("--output=jsonl",), ("--json",)])
def test_errors_are_json_where_the_output_is(run: Run, args):
    assert run("list", *args, "--store", "nowhere").error["code"] == "store_not_found"


def test_errors_are_words_elsewhere(run: Run, monkeypatch):
    for args in (("-o", "csv"), ("--json", "-o", "table")):
        assert run("list", *args, "--store", "nowhere").err.startswith("error: ")
    monkeypatch.setenv("HOLDFAST_OUTPUT", "json")
    assert run("list", "--store", "nowhere").error["code"] == "store_not_found"


def test_a_variable_with_a_word_that_is_none_is_refused(run: Run, monkeypatch):
    monkeypatch.setenv("HOLDFAST_OUTPUT", "xml")
    refused = run("list")
    assert refused.exit_code == 2 and "xml" in refused.err


def test_run_takes_the_settings_file_before_its_name(run: Run):
    Path("other.toml").write_text("nonsense = 1\n", encoding="utf-8")
    refused = run("--config", "other.toml", "run", "flows:team", "--config", "tone=dry")
    assert refused.exit_code != 0
