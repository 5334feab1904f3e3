"""`holdfast events`: the journal in words and as JSON lines, told in the trail, followed while it grows."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import holdfast
from holdfast.cli.events import row_line
from holdfast.cli.exits import Exit
from tests.cli.conftest import Result, Run
from tests.cli.encrypted import encrypted_store
from tests.cli.running import environment, heeded


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.out.splitlines()]


def seqs(run: Run, store: Path, *args: object) -> list[int]:
    result = run("events", "WF-1", "--store", store, "--json", *args)
    assert result.exit_code == Exit.DONE
    return [one["seq"] for one in lines(result)]


def test_events_are_told_in_words(run: Run, store: Path):
    result = run("events", "WF-1", "--store", store)
    head, *rows = result.out.splitlines()
    assert head.split() == ["SEQ", "TIME", "(UTC)", "TYPE", "AGENT", "WHAT"]
    assert len(rows) == 5
    assert rows[1].endswith("planner decided: go on (Why: why not)") and "DECISION_RECORDED" in rows[1]
    assert rows[0].endswith("checkpoint 1 was made")


def test_programs_get_a_line_of_what_is_nested_deeper_than_the_encoder_goes(run: Run, store: Path):
    deep: dict[str, Any] = {}
    for _ in range(1_500):
        deep = {"a": deep}
    with holdfast.open(str(store)) as service:
        service.append_event("WF-1", "FOUND", deep)
    result = run("events", "WF-1", "--store", store, "--type", "FOUND", "--json")
    assert result.exit_code == Exit.DONE
    [line] = result.out.splitlines()
    assert line.count('{"a":') == 1_500


def test_programs_get_one_line_for_each_with_everything_in_it(run: Run, store: Path):
    [decision] = lines(run("events", "WF-1", "--store", store, "--type", "DECISION_RECORDED", "--json"))
    assert decision["data"] == {"description": "go on", "rationale": "why not"}
    assert decision["agent"] == "planner" and decision["kind"] == "decision" and decision["seq"] == 2
    assert decision["hash"].startswith("sha256:") and decision["timestamp"].endswith("Z")
    assert decision["cost"] is None and decision["erased"] is False


def test_events_that_are_gone_are_told_as_such(run: Run, store: Path):
    [journal] = store.glob("events/*/wf-1*/*.jsonl")
    whole = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(whole[:2]))
    result = run("events", "WF-1", "--store", store)
    assert result.exit_code == Exit.CORRUPT and len(result.out.splitlines()) == 3
    assert "events are gone: the last is 2, and checkpoint 3 was made after 5" in result.err
    journal.unlink()
    gone = run("events", "WF-1", "--store", store)
    assert (gone.exit_code, gone.out) == (Exit.CORRUPT, "")
    assert "the last is 0" in gone.err and "no such event" not in gone.err
    assert "`holdfast copy BACKUP STORE WF-1`" in gone.err
    assert run("events", "WF-2", "--store", store).exit_code == Exit.DONE


def test_a_type_that_no_event_has_is_told_with_what_may_have_been_meant(run: Run, store: Path):
    result = run("events", "WF-1", "--store", store, "--type", "DECISION_RECORDET", "--json")
    assert (result.exit_code, result.out) == (Exit.DONE, "")
    said = "warning: nothing here is of type DECISION_RECORDET. Did you mean DECISION_RECORDED?\n"
    assert result.err == said
    # One of the application is known by the events that are there.
    own = run("events", "WF-1", "--store", store, "--type", "TASK_ASSIGNE")
    assert "Did you mean TASK_ASSIGNED?" in own.err and "There is no such event." in own.err


def test_a_cost_is_told(run: Run, store: Path):
    with holdfast.open(str(store)) as service:
        service.append_event("WF-1", "CALLED", cost={"tokens": 3})
    [called] = lines(run("events", "WF-1", "--store", store, "--type", "CALLED", "--json"))
    assert called["cost"] == {"tokens": 3}


def test_what_is_asked_for_is_shown_and_nothing_else(run: Run, store: Path):
    assert seqs(run, store) == [1, 2, 3, 4, 5]
    assert seqs(run, store, "--limit", 2) == [4, 5]
    assert seqs(run, store, "--after", 1, "--limit", 2) == [2, 3]
    assert seqs(run, store, "--agent", "planner") == [2]
    assert seqs(run, store, "--type", "CHECKPOINT_CREATED", "--type", "TASK_ASSIGNED") == [1, 3, 4, 5]
    assert seqs(run, store, "--type", "CHECKPOINT_CREATED", "--limit", 1) == [5]
    assert seqs(run, store, "--since", "1h") == [1, 2, 3, 4, 5]
    assert seqs(run, store, "--since", "2999-01-01") == []


def test_none_is_no_failure(run: Run, store: Path):
    result = run("events", "WF-1", "--store", store, "--type", "AGENT_FAILED")
    assert (result.exit_code, result.out, result.err) == (0, "", "There is no such event.\n")


def test_wrong_input_is_told(run: Run, store: Path):
    result = run("events", "WF-11", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "Did you mean WF-1" in result.err
    assert run("events", "WF-1", "--store", store, "--since", "soon").exit_code == Exit.USAGE
    assert run("events", "WF-1", "--store", store, "--after", "-1").exit_code == Exit.USAGE


def test_reading_is_told_in_the_trail(run: Run, store: Path):
    run("events", "WF-1", "--store", store)
    assert "EVENTS_READ" in run("audit", "log", "--limit", "1", "--store", store).out


def test_the_terminal_obeys_nothing(run: Run, store: Path):
    with holdfast.open(str(store)) as service:
        event = service.record_decision("WF-1", "\x1b[31mred\u202e", agent_id="a")
    assert "\x1b" not in run("events", "WF-1", "--store", store).out
    assert "\x1b" not in run("events", "WF-1", "--store", store, "--json").out
    assert "\x1b" not in row_line(event) and "\u202e" not in row_line(event)


def test_without_the_key_nothing_is_told(run: Run, tmp_path: Path, monkeypatch):
    store = encrypted_store(run, monkeypatch, tmp_path)
    assert "why not" in run("events", "WF-1", "--store", store, "--json").out
    monkeypatch.delenv("HOLDFAST_ENCRYPTION_KEY")
    result = run("events", "WF-1", "--store", store)
    assert result.exit_code == Exit.NO_KEY and "go on" not in result.out


def test_a_damaged_event_ends_it(run: Run, store: Path):
    [journal] = store.glob("events/*/wf-1*/*.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b"why not", b"because"))
    assert run("events", "WF-1", "--store", store).exit_code == Exit.CORRUPT


def test_what_is_added_is_followed_until_interrupted(run: Run, store: Path, tmp_path: Path):
    for more in (["--json"], []):
        words = [
            sys.executable,
            "-m",
            "holdfast",
            "events",
            "WF-1",
            "--store",
            str(store),
            "--after",
            "4",
            "--follow",
        ]
        with (
            heeded(signal.SIGINT),
            subprocess.Popen(
                [*words, *more],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment(tmp_path),
            ) as process,
        ):
            try:
                assert process.stdout is not None
                known = [process.stdout.readline() for _ in range(1 if more else 2)]
                with holdfast.open(str(store)) as service:
                    service.record_decision("WF-1", "one more", agent_id="late")
                added = process.stdout.readline()
                while "one more" not in added:
                    added = process.stdout.readline()
                process.send_signal(signal.SIGINT)
                assert process.wait(30) == Exit.INTERRUPTED
            finally:
                process.kill()
        assert "5" in known[-1] and "late" in added


@pytest.mark.parametrize("more", [("--json",), ("--output", "jsonl"), ()])
def test_following_shows_what_is_asked_for_only(run: Run, store: Path, monkeypatch, more):
    def pause(seconds: float) -> None:
        """Let something happen, then interrupt."""
        if seconds and pauses:
            raise KeyboardInterrupt
        pauses.append(seconds)
        with holdfast.open(str(store)) as service:
            service.append_event("WF-1", "PASSED_OVER")
            service.record_decision("WF-1", "one more", agent_id="late")

    pauses: list[float] = []
    monkeypatch.setattr("holdfast.cli.events.time", SimpleNamespace(sleep=pause))
    result = run("events", "WF-1", "--store", store, "--follow", "--type", "DECISION_RECORDED", *more)
    assert result.exit_code == Exit.INTERRUPTED
    assert result.out.count("one more") >= 1 and "PASSED_OVER" not in result.out
