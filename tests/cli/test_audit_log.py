from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from holdfast.cli.moments import read_moment
from tests.cli.conftest import Run


def entries(run: Run, store: Path, *args: object) -> list[dict[str, object]]:
    result = run("audit", "log", *args, "--store", store, "--json")
    assert (result.exit_code, result.err) == (0, "")
    return [json.loads(line) for line in result.out.splitlines()]


def test_the_newest_entry_is_the_last(run: Run, store: Path):
    found = entries(run, store, "--session", "s-1")
    assert [entry["seq"] for entry in found] == list(range(1, len(found) + 1))
    assert found[0]["type"] == "SESSION_STARTED" and found[1]["type"] == "CHECKPOINT_CREATED"


def test_a_person_reads_a_table(run: Run, store: Path):
    head, *rows = run("audit", "log", "--session", "s-1", "--store", store).out.splitlines()
    assert head.split() == ["ENTRY", "TIME", "(UTC)", "TYPE", "OUTCOME", "WORKFLOW", "WHO", "FACTS"]
    assert rows[1].startswith("s-1#2 ") and "CHECKPOINT_CREATED" in rows[1] and "cp_seq=1" in rows[1]


def test_filters_leave_out_the_rest(run: Run, store: Path):
    decisions = entries(run, store, "--type", "agent_decision")
    assert [entry["agent"] for entry in decisions] == ["planner"]
    assert {entry["workflow"] for entry in entries(run, store, "--workflow", "WF-2")} == {"WF-2"}
    assert entries(run, store, "--agent", "planner")[-1:] == decisions
    assert entries(run, store, "--actor", "nobody") == []
    both = entries(run, store, "--type", "AGENT_DECISION", "--type", "TASK_ASSIGNED")
    assert {entry["type"] for entry in both} >= {"AGENT_DECISION"}


def test_a_session_that_is_not_there_is_told(run: Run, store: Path):
    result = run("audit", "log", "--session", "s-2", "--store", store)
    assert (result.exit_code, result.out) == (Exit.NOT_FOUND, "")
    assert "there is no such session" in result.err and "Did you mean s-1?" in result.err


def test_a_type_that_no_entry_has_is_told_with_what_may_have_been_meant(run: Run, store: Path):
    result = run("audit", "log", "--type", "AGENT_DESICION", "--store", store)
    assert (result.exit_code, result.out) == (Exit.DONE, "")
    said = "warning: nothing here is of type AGENT_DESICION. Did you mean AGENT_DECISION?\n"
    assert result.err == f"{said}The trail has no such entry.\n"
    # One that Holdfast writes may well be in no entry.
    assert (
        run("audit", "log", "--type", "KEY_ROTATED", "--store", store).err == "The trail has no such entry.\n"
    )
    with bootstrap.open(str(store)) as service:
        service.audit.log_event("LOAN_DECIDED")
    assert run("audit", "log", "--type", "LOAN_DECIDED", "--store", store).err == ""


def test_times_leave_out_what_is_earlier_or_later(run: Run, store: Path):
    assert entries(run, store, "--since", "1h", "--session", "s-1")
    assert entries(run, store, "--until", "1h") == []
    assert entries(run, store, "--since", "2020-01-01", "--until", "2020-01-02T00:00:00+01:00") == []


def test_a_limit_keeps_the_newest_and_says_so(run: Run, store: Path):
    every = entries(run, store, "--session", "s-1")
    assert entries(run, store, "--session", "s-1", "--limit", 1) == every[-1:]
    result = run("audit", "log", "--session", "s-1", "--limit", 1, "--store", store)
    assert f"1 of {len(every)} entries; --limit {len(every)} shows all." in result.err


def test_the_newest_of_everything_are_found_without_reading_the_beginning(run: Run, store: Path):
    every = entries(run, store)
    # The look before told of itself by one entry, and this was the session's first.
    assert entries(run, store, "--limit", 3)[0] == every[-1]
    result = run("audit", "log", "--limit", 1, "--store", store)
    assert f"1 of {len(every) + 3} entries" in result.err and result.out.count("\n") == 2


def test_an_empty_answer_is_no_failure(run: Run, store: Path):
    result = run("audit", "log", "--workflow", "nobody", "--store", store)
    assert (result.exit_code, result.out) == (0, "") and "no such entry" in result.err


def test_reading_the_trail_is_told_in_it(run: Run, store: Path):
    count = len(entries(run, store, "--session", "s-1"))
    last = entries(run, store)[-1]
    assert (last["type"], last["data"]) == ("TRAIL_READ", {"entries": count, "session": "s-1"})


def test_payloads_are_not_opened(run: Run, store: Path):
    assert "why not" not in run("audit", "log", "--store", store, "--json").out


def test_nothing_of_it_is_obeyed_by_a_terminal(run: Run, store: Path):
    with bootstrap.open(str(store)) as service:
        service.audit.log_event("NOTED", session_id="s-1", facts={"name": "a\x1b[31mb\x7f"})
    assert "\x1b" not in run("audit", "log", "--store", store).out
    assert "\x7f" not in run("audit", "log", "--store", store, "--json").out


def moment(text: str) -> datetime | None:
    return read_moment(click.Context(click.Command("log")), click.Option(["--since"]), text)


def test_moments_are_in_utc_or_so_long_ago():
    assert moment("2026-01-31") == datetime(2026, 1, 31, tzinfo=UTC)
    assert moment("2026-01-31T12:00:00+02:00") == datetime(2026, 1, 31, 10, tzinfo=UTC)
    found = moment("90m")
    assert found is not None
    assert timedelta(minutes=89) < datetime.now(UTC) - found < timedelta(minutes=91)


@pytest.mark.parametrize("text", ["", "yesterday", "7y", "999999w", "2026-13-01"])
def test_what_is_no_moment_is_wrong_usage(run: Run, store: Path, text: str):
    result = run("audit", "log", "--since", text, "--store", store)
    assert result.exit_code == Exit.USAGE and "is no time" in result.err
