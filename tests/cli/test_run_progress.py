from __future__ import annotations

import io
import json
import os
import pty
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console
from rich.spinner import Spinner

from holdfast.cli.output import Output
from holdfast.cli.run_progress import Lines, Tell, json_lines, seconds_text, shown, table_of
from holdfast.cli.run_tally import Tally
from holdfast.domain.plain import TypeRegistry

STORY: tuple[tuple[str, dict[str, Any]], ...] = (
    ("agent_started", {"step_id": "plan", "agent": "plan", "attempt": 1}),
    ("agent_failed", {"step_id": "plan", "agent": "plan", "error": "no \x1b[31mfuel", "retries": True}),
    ("agent_started", {"step_id": "plan", "agent": "plan", "attempt": 2}),
    ("agent_completed", {"step_id": "plan", "agent": "plan", "seconds": 0.25, "metrics": {}}),
    ("agent_skipped", {"step_id": "extra", "agent": "extra", "reason": "not needed"}),
    ("checkpoint_saved", {"checkpoint_id": "W@2"}),
    ("phase_completed", {"phase": 1, "of": 2}),
    ("agent_items", {"agent": "research", "count": 3}),
    ("agent_completed", {"step_id": "research[0]", "agent": "research", "seconds": 75.0, "metrics": {}}),
    ("approval_requested", {"step_id": "publish", "name": "ok", "question": "Publish it?"}),
    ("approval_answered", {"step_id": "publish", "name": "ok", "granted": False}),
    ("warning", {"text": "agent 'x' is new"}),
    ("checkpoint_failed", {"error": "disk full"}),
    ("commit_failed", {"error": "disk full"}),
    ("stopping", {"status": "paused", "by": "ada"}),
    ("something_new", {"of": "a later version"}),
)


def tell_all(tally: Tally, *tells: Tell) -> None:
    for kind, data in STORY:
        tally.told(kind, data)
        for tell in tells:
            tell(kind, data)


def test_lines_tell_what_is_worth_one(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(["plan", "extra", "research", "publish"])
    tell_all(tally, Lines(tally).told)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "plan: started",
        "plan: failed: no \\x1b[31mfuel; it is tried again",
        "plan: started (attempt 2)",
        "plan: done in 0.2 s",
        "extra: skipped: not needed",
        "phase 1 of 2 is over, 1 checkpoint so far",
        "research[0]: done in 1 min 15 s, 1 of 3",
        "publish: waits for an answer to ok: Publish it?",
        "publish: ok was denied",
        "warning: agent 'x' is new",
        "warning: a checkpoint failed: disk full",
        "warning: not durable: disk full",
        "paused by ada: what is at work ends first",
    ]


def test_programs_get_a_line_of_json_for_each_event() -> None:
    stream = io.StringIO()
    tell = json_lines(stream, TypeRegistry())
    tell("agent_completed", {"step_id": "a", "metrics": {"at": datetime(2026, 1, 11, tzinfo=UTC)}})
    tell("run_ended", {"status": "completed"})
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert lines[0]["message_type"] == "event" and lines[0]["event"] == "agent_completed"
    assert lines[0]["metrics"]["at"]["$hf"] == "datetime"
    assert lines[1] == {"message_type": "event", "event": "run_ended", "status": "completed"}


def test_a_result_that_is_nested_deeper_than_the_encoder_goes_is_a_line_too() -> None:
    deep: dict[str, Any] = {}
    for _ in range(1_500):
        deep = {"a": deep}
    stream = io.StringIO()
    json_lines(stream, TypeRegistry())("agent_completed", {"result": deep})
    [line] = stream.getvalue().splitlines()
    assert line.count('{"a":') == 1_500


def test_a_reader_of_events_that_goes_away_stops_nobody() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    stream = os.fdopen(writer, "w")
    tell = json_lines(stream, TypeRegistry())
    tell("run_started", {})
    tell("run_ended", {})
    with pytest.raises(BrokenPipeError):
        stream.close()


def painted(tally: Tally) -> str:
    console = Console(file=io.StringIO(), width=120, no_color=True)
    console.print(table_of(tally, Spinner("line")))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_bars_show_each_agent_in_one_row() -> None:
    tally = Tally(["plan", "extra", "research", "publish"])
    tell_all(tally)
    tally.told("agent_started", {"step_id": "publish", "agent": "publish"})
    tally.told("agent_progress", {"step_id": "publish", "agent": "publish", "share": 0.5, "note": "x" * 99})
    tally.told("approval_requested", {"step_id": "publish", "name": "ok", "question": "Really\x07?"})
    lines = painted(tally).splitlines()
    assert lines[0].startswith("+ plan") and "0.2 s" in lines[0]
    assert lines[1].startswith("- extra") and "not needed" in lines[1]
    assert "1/3" in lines[2]
    assert "publish" in lines[3] and "xxx..." in lines[3]
    assert lines[4:] == ["  1 checkpoint", "  publish waits for ok: Really\\x07?"]


def test_bars_tell_what_was_kept_and_what_failed() -> None:
    tally = Tally(["plan", "write"])
    tally.begin_from({"tasks": [{"id": "plan", "agent": "plan"}]})
    tally.told("agent_failed", {"step_id": "write", "agent": "write", "error": "no fuel"})
    first, second, *_ = painted(tally).splitlines()
    assert first.startswith("+ plan") and "kept" in first
    assert second.startswith("! write") and "no fuel" in second


@pytest.mark.parametrize("output", [Output(as_json=True), Output(quiet=True)])
def test_nothing_is_shown_where_nothing_is_wanted(output: Output, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(["plan"])
    with shown(output, tally, TypeRegistry(), events=False) as tell:
        tell_all(tally, tell)
    assert capsys.readouterr() == ("", "")


def test_lines_are_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(["plan"])
    with shown(Output(), tally, TypeRegistry(), events=False) as tell:
        tell_all(tally, tell)
    assert capsys.readouterr().err.startswith("plan: started\n")


def test_events_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with shown(Output(as_json=True), Tally(), TypeRegistry(), events=True) as tell:
        tell("run_started", {"resumed": False})
    assert json.loads(capsys.readouterr().out)["event"] == "run_started"


def read_terminal(ours: int) -> str:
    data = b""
    try:
        while more := os.read(ours, 65536):
            data += more
    except OSError:
        # The other end is closed, and everything was read.
        pass
    os.close(ours)
    return data.decode()


@pytest.mark.parametrize(("color", "has_color"), [("always", True), ("never", False)])
def test_a_terminal_gets_bars(monkeypatch: pytest.MonkeyPatch, color: str, has_color: bool) -> None:
    ours, theirs = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        tally = Tally(["plan"])
        with shown(Output(color=color), tally, TypeRegistry(), events=False) as tell:
            tell_all(tally, tell)
        monkeypatch.undo()
    text = read_terminal(ours)
    assert "plan" in text and "0.2 s" in text
    assert ("\x1b[32m" in text) is has_color


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (12.4, "12 s"), (185, "3 min 5 s"), (7800, "2 h 10 min")],
)
def test_times_are_written_for_people(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
