from __future__ import annotations

from typing import Any

import click
import pytest

from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call
from holdfast.cli.output import Output
from holdfast.cli.run_options import Manner, program_named, run_options


def manner(**given: Any) -> Manner:
    usual = {"strict": False, "no_wait": False, "lease_seconds": None, "config": (), "events": False}
    return Manner(**{**usual, **given})


def test_options_say_how_a_run_is_carried_out() -> None:
    chosen = manner(strict=True, no_wait=True, lease_seconds=5.0).options("flows:team", {})
    assert (chosen.strict, chosen.waits, chosen.lease_seconds) == (True, False, 5.0)
    usual = manner().options("flows:team", {})
    assert (usual.strict, usual.waits, usual.lease_seconds) == (False, True, 30.0)


def test_what_a_run_was_begun_with_stays_unless_it_is_given_again() -> None:
    begun = {"tone": "dry", "depth": 1, "program": "old:team"}
    chosen = manner(config=("depth=2",)).options("flows:team", begun)
    assert chosen.config == {"tone": "dry", "depth": 2, "program": "flows:team"}


def test_names_of_before_are_told_with_those_of_now() -> None:
    chosen = manner(renamed=("explore=scout", "old=2")).options("flows:team", {})
    assert chosen.renamed == {"explore": "scout", "old": "2"}


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(click.UsageError, match="--events needs --json"):
        manner(events=True).check(Call())
    manner(events=True).check(Call(output=Output(as_json=True)))
    with pytest.raises(click.UsageError, match="program"):
        manner(config=("program=x",)).check(Call())


def test_a_flag_names_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert program_named("flows:team", {"program": "other:team"}, "W") == "flows:team"


@pytest.mark.parametrize(
    ("begun", "hint"),
    [({"program": "flows:team"}, "give `--app flows:team`"), ({}, "Give --app module:workflow")],
)
def test_what_a_store_remembers_is_a_hint_and_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, begun: dict[str, str], hint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Failure) as refused:
        program_named(None, begun, "W")
    assert (refused.value.leave, refused.value.place) == (Exit.USAGE, "W")
    assert hint in refused.value.hint


def test_both_commands_have_the_same_options() -> None:
    @click.command()
    @run_options
    def command(**given: Any) -> None: ...

    names = [option.opts[0] for option in command.params]
    own = ["--strict", "--no-wait", "--lease-seconds", "--config", "--renamed", "--events"]
    assert names == [*own, "--dry-run", "--yes", "--reason"]
