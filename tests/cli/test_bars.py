from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from holdfast.cli import bars
from holdfast.cli.bars import bar, watched
from holdfast.cli.output import Output


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show everything at once."""
    monkeypatch.setattr(bars, "PATIENCE_SECONDS", 0)
    monkeypatch.setattr(bars, "STATUS_SECONDS", 0)


def worked_through(output: Output) -> list[str]:
    return list(watched(output, ["a", "b\x1b[2J"], "copy", what=str))


def test_nothing_is_shown_of_what_is_over_at_once(capsys, monkeypatch):
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    for output in (Output(), Output(as_json=True)):
        assert worked_through(output) == ["a", "b\x1b[2J"]
    assert capsys.readouterr() == ("", "")


def test_a_bar_is_painted_on_a_terminal_and_gone_afterwards(capsys, monkeypatch, hasty):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    worked_through(Output(color="never"))
    shown = capsys.readouterr().err
    assert "copy" in shown and "/2" in shown and "\\x1b[2J" in shown
    assert "\x1b[2J" not in shown


def test_a_terminal_that_nothing_paints_gets_a_number(capsys, monkeypatch, hasty):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    worked_through(Output())
    assert capsys.readouterr().err == "\rcopy 0 of 2\rcopy 1 of 2\n"


def test_of_how_many_is_left_out_where_nobody_knows(capsys, monkeypatch, hasty):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    with bar(Output(), "export") as show:
        show(3, 0)
    assert capsys.readouterr().err == "\rexport 3\n"


def test_programs_are_told_in_json_lines(capsys, hasty):
    worked_through(Output(as_json=True))
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert first == {"message_type": "status", "work": "copy", "done": 0, "total": 2, "what": "a"}
    assert second["done"] == 1


def test_programs_are_not_told_again_and_again(capsys, monkeypatch):
    now = iter([0.0, 6.0, 6.0, 7.0, 7.0, 12.0, 12.0])
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: next(now)))
    with bar(Output(as_json=True), "copy") as show:
        for done in range(3):
            show(done, 3)
    assert [json.loads(line)["done"] for line in capsys.readouterr().err.splitlines()] == [0, 2]


def test_quiet_and_pipes_are_told_nothing(capsys, monkeypatch, hasty):
    worked_through(Output())
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    worked_through(Output(quiet=True))
    assert capsys.readouterr().err == ""
