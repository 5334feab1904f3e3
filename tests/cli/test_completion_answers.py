"""What a shell is answered: commands, options, workflows and checkpoints, quickly, and nothing that harms."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import holdfast
from holdfast.cli import completion_answers
from holdfast.cli.completion_answers import OFFERED_MAX, answers

STANDING = SimpleNamespace(monotonic=lambda: 0.0)
BREAKS = " \t\n\"'@><=;|&(:"


@pytest.fixture
def complete(monkeypatch, tmp_path: Path, store: Path):
    """Answer what a line is completed by, in the folder of a store."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_STORE", str(store))
    # However long a busy machine takes, nothing is left out because of that.
    monkeypatch.setattr(completion_answers, "time", STANDING)

    def ask(line: str, shell: str = "zsh") -> list[str]:
        monkeypatch.setenv("COMP_TEXT", f"holdfast {line}")
        monkeypatch.setenv("COMP_BREAKS", BREAKS)
        return answers(shell)

    return ask


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rep", ["replay", "report"]),
        ("audit ver", ["verify"]),
        ("--json audit ver", ["verify"]),
        ("audit --json ver", ["verify"]),
        ("report --fo", ["--format", "--follow"]),
        ("report --format h", ["html"]),
        ("report WF", ["WF-1", "WF-2"]),
        ("report WF-1 ", []),
        ("export WF-1 WF", ["WF-1", "WF-2"]),
        ("show WF-2", ["WF-2"]),
        ("show WF-2@", ["WF-2@latest", "WF-2@1"]),
        ("diff WF-1@2 WF-1@", ["WF-1@latest", "WF-1@3", "WF-1@2", "WF-1@1"]),
        ("report WF-2@", []),
        ("hold place --workflow WF", ["WF-1", "WF-2"]),
        ("report nothing", []),
        ("no-such-command x", []),
        ("export --all --out ", [":file"]),
        ("import archive ", [":file"]),
        ("copy a b WF", []),
    ],
)
def test_a_line_is_completed_by_what_fits(complete, line, expected):
    assert complete(line) == expected


def test_every_command_is_offered(complete):
    assert {"events", "watch", "completion", "config"} <= set(complete(""))


def test_bash_keeps_what_stands_before_the_last_break(complete):
    assert complete("show WF-2@", "bash") == ["latest", "1"]
    assert complete("show WF", "bash") == ["WF-1", "WF-2"]


def test_the_store_of_the_line_is_asked(complete, tmp_path: Path):
    with holdfast.open(str(tmp_path / "other")) as service:
        service.create_checkpoint("OTHER", {})
    assert complete(f"report --store {tmp_path / 'other'} ") == ["OTHER"]
    assert complete(f"--store={tmp_path / 'other'} report O") == ["OTHER"]


@pytest.mark.parametrize(
    "name", ["$(touch evil)", "a b", "a;b", "`x`", "-rf", "*", "~root", "a'b", 'a"b', "a\u202eb"]
)
def test_a_name_that_a_shell_reads_something_into_is_not_offered(complete, store: Path, name):
    with holdfast.open(str(store)) as service:
        service.create_checkpoint(name, {})
    assert complete("report ") == ["WF-1", "WF-2"]


def test_where_there_is_no_store_nothing_is_offered_and_nothing_is_said(complete, capsys):
    for url in ("nowhere", "postgresql://nobody@127.0.0.1:1/x", "odd:x", "memory:"):
        assert complete(f"report --store {url} ") == []
    assert capsys.readouterr() == ("", "")


def test_completing_changes_nothing_in_the_store(complete, store: Path):
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    assert complete("show WF-1@")
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


def test_no_more_is_offered_than_anybody_reads(complete, store: Path):
    with holdfast.open(str(store)) as service:
        for number in range(OFFERED_MAX + 10):
            service.append_event(f"many-{number:04}", "NOTED")
    assert len(complete("report many")) == OFFERED_MAX


def test_a_slow_store_is_asked_for_a_moment_only(complete, monkeypatch):
    moments = iter([0.0, 0.0, *[9.0] * 9])
    monkeypatch.setattr(completion_answers, "time", type("Clock", (), {"monotonic": lambda: next(moments)}))
    assert len(complete("report ")) == 1
    monkeypatch.setattr(completion_answers, "time", STANDING)
    monkeypatch.setattr(completion_answers, "_LOOKED_AT_MAX", 1)
    assert len(complete("report ")) == 1


def test_an_open_quote_completes_nothing_and_breaks_nothing(complete):
    assert complete('report "WF') in ([], ["WF-1", "WF-2"])
