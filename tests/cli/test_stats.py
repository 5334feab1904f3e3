"""`holdfast stats`: one page with the most important, or parts of it whole; for people and for programs."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.application.insight.summary import PARTS
from holdfast.cli.exits import Exit
from tests.application.insight.teams import run as run_team
from tests.application.insight.teams import team
from tests.cli.conftest import Run
from tests.cli.running import open_gate, running, write_program

TITLES = (
    "Risk of live runs",
    "Storage",
    "Growth",
    "Agents",
    "Paths",
    "Checkpoint interval",
    "Recoveries",
    "Anomalies",
)


@pytest.fixture(scope="module", params=["file:{}/teams", "sqlite:{}/teams.db"])
def teams(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store with runs of a real team: one completed, one that tried again, one that failed."""
    url = str(request.param).format(tmp_path_factory.mktemp("teams"))
    with bootstrap.open(url) as service:
        for name, failures in (("FINE", 0), ("AGAIN", 1), ("FAILED", 2)):
            run_team(service, team(), name, rounds=2, failures=failures)
    return url


def test_a_page_has_the_most_important_of_each_part_and_fits(run: Run, teams: str) -> None:
    result = run("stats", "--store", teams)
    assert result.exit_code == Exit.DONE
    lines = result.out.splitlines()
    assert [line for line in lines if line in TITLES] == list(TITLES)
    assert max(map(len, lines)) <= 80
    assert "high 50  FAILED (failed)" in lines
    assert "   50  the run has failed and waits to be resumed" in lines
    assert any("plan > research > write > judge > publish" in line for line in lines)
    assert any(line.startswith("Most failing: publish (60%, ValueError)") for line in lines)
    assert result.err == ""


@pytest.mark.parametrize(
    ("flag", "title"),
    [
        ("--growth", "Growth"),
        ("--forecast", "Growth"),
        ("--agents", "Agents"),
        ("--paths", "Paths"),
        ("--intervals", "Checkpoint interval"),
        ("--recoveries", "Recoveries"),
        ("--anomalies", "Anomalies"),
        ("--risk", "Risk of live runs"),
        ("--by=workflow", "Storage"),
        ("--by=kind", "Storage"),
        ("--by=agent", "Agents"),
    ],
)
def test_a_part_can_be_asked_for_alone(run: Run, teams: str, flag: str, title: str) -> None:
    lines = run("stats", flag, "--store", teams).out.splitlines()
    assert [line for line in lines if line in TITLES] == [title]


def test_parts_go_together(run: Run, teams: str) -> None:
    told = run("stats", "--agents", "--risk", "--by", "kind", "--store", teams, "--json").data
    assert {part for part in PARTS if part in told} == {"agents", "risks", "storage"}


def test_programs_get_everything(run: Run, teams: str) -> None:
    told = run("stats", "--store", teams, "--json").data
    assert set(PARTS) <= told.keys()
    assert (told["looked_at"], told["total"], told["unreadable"]) == (3, 3, [])
    publish = next(one for one in told["agents"] if one["agent"] == "publish")
    assert (publish["attempts"], publish["failed"], publish["gave_up"]) == (5, 3, 1)
    assert told["paths"]["loops"][0]["agents"] == ["write", "judge"]
    (risk,) = told["risks"]["runs"]
    assert (risk["workflow_id"], risk["reasons"][0]["code"]) == ("FAILED", "failed")


def test_one_workflow_can_be_named_and_one_that_is_not_there_is_told(run: Run, teams: str) -> None:
    told = run("stats", "FINE", "--store", teams, "--json").data
    assert told["workflow_id"] == "FINE"
    assert [one["workflow_id"] for one in told["storage"]["workflows"]] == ["FINE"]
    assert "in the whole store" in run("stats", "FINE", "--store", teams).out
    result = run("stats", "FIN", "--store", teams)
    assert result.exit_code == Exit.NOT_FOUND and "Did you mean FINE?" in result.err


def test_reading_journals_is_told_in_the_trail_and_listings_are_not(run: Run, teams: str) -> None:
    def entries() -> Counter[tuple[str, str | None]]:
        out = run("audit", "log", "--limit", "500", "--store", teams, "--json").out
        told = [json.loads(line) for line in out.splitlines()]
        return Counter(
            (one["type"], one.get("workflow")) for one in told if one["session"].startswith("cli-")
        )

    before = entries()
    run("stats", "--growth", "--by", "kind", "--store", teams)
    assert entries()["EVENTS_READ", None] == before["EVENTS_READ", None]
    run("stats", "--agents", "--store", teams)
    assert entries()["EVENTS_READ", None] == before["EVENTS_READ", None] + 1
    run("stats", "FINE", "--recoveries", "--store", teams)
    assert entries()["TRAIL_READ", "FINE"] == before["TRAIL_READ", "FINE"] + 1
    assert entries()["EVENTS_READ", "FINE"] == before["EVENTS_READ", "FINE"] + 1


def test_how_many_journals_were_read_is_told(run: Run, teams: str) -> None:
    result = run("stats", "--agents", "--limit", 1, "--store", teams)
    assert result.err == "Journals of the newest 1 of 3 workflows; --limit reads more.\n"
    assert run("stats", "--growth", "--limit", 1, "--store", teams).err == ""


@pytest.mark.parametrize(
    ("written", "bytes_meant"),
    [("50GB", 50 * 10**9), ("1.5 mb", 1_500_000), ("2000", 2000), ("7T", 7 * 10**12), ("3kB", 3000)],
)
def test_a_quota_is_written_as_people_do(run: Run, teams: str, written: str, bytes_meant: int) -> None:
    told = run("stats", "--forecast", "--quota", written, "--store", teams, "--json").data
    assert told["growth"]["limit_bytes"] == bytes_meant


@pytest.mark.parametrize(
    "words", [("--quota", "much"), ("--days", "0"), ("--limit", "0"), ("--by", "colour"), ("A", "B")]
)
def test_what_cannot_be_is_wrong_usage(run: Run, teams: str, words: tuple[str, ...]) -> None:
    result = run("stats", *words, "--store", teams, "--json")
    assert (result.exit_code, result.error["code"]) == (Exit.USAGE, "wrong_usage")


def test_an_empty_store_has_a_page_too(run: Run, tmp_path: Path) -> None:
    run("init", "--store", tmp_path / "new")
    result = run("stats", "--store", tmp_path / "new")
    assert result.exit_code == Exit.DONE
    assert (
        "0 live runs" in result.out and "the checkpoints span 0 of the 3 days that are needed" in result.out
    )


def test_a_store_without_agents_is_told_as_it_is(run: Run, store: Path) -> None:
    out = run("stats", "--store", store).out
    assert "No journal tells of an agent." in out and "4 states" in out


def test_names_out_of_a_store_are_never_obeyed(run: Run, tmp_path: Path) -> None:
    with bootstrap.open(str(tmp_path / "new")) as service:
        name = "wf-\u202egnp"
        service.create_checkpoint(name, {"a": 1})
        service.acquire_lease(name, "me", ttl_seconds=0)
        data = {"attempt": 3}
        service.append_event(name, "AGENT_STARTED", data, agent_id="a\u200bb", step_id="a\u200bb")
    out = run("stats", "--store", tmp_path / "new").out
    assert "wf-\\u202egnp" in out and "a\\u200bb" in out
    assert "\u202e" not in out and "\u200b" not in out


def test_a_damaged_journal_is_told_and_the_rest_is_counted(run: Run, store: Path) -> None:
    (path,) = store.glob("events/*/wf-1*/*.jsonl") or store.glob("events/**/wf-1*")
    path.write_bytes(path.read_bytes().replace(b"go on", b"gone!"))
    result = run("stats", "--agents", "--store", store)
    assert result.exit_code == Exit.DONE
    assert "the journal of WF-1 could not be read to its end: run `holdfast doctor`" in result.err


def test_a_process_that_is_killed_is_a_risk_and_then_a_crash_that_was_come_back_from(
    run: Run, tmp_path: Path
) -> None:
    program, place = write_program(tmp_path), f"file:{tmp_path}/store"
    os.mkfifo(tmp_path / "gate")
    with running(tmp_path, "run", f"{program}:gated", "--id", "W", "--store", place) as first:
        first.until("agent_started", step_id="work")
    (risk,) = run("stats", "--risk", "--store", place, "--json").data["risks"]["runs"]
    assert risk["agents"] == ["work"]
    assert {one["code"] for one in risk["reasons"]} == {"owner_gone"}
    with running(tmp_path, "resume", "W", "--app", f"{program}:gated", "--store", place) as second:
        second.until("agent_started", step_id="work")
        open_gate(tmp_path)
        assert second.ended()[0] == Exit.DONE
    told = run("stats", "W", "--store", place, "--json").data
    assert (told["recoveries"]["crashed"], told["recoveries"]["completed"]) == (1, 1)
    assert (told["recoveries"]["success_rate"], told["risks"]["live"]) == (1.0, 0)
    best = told["intervals"]["overall"]
    assert best["failures"] == 1 and best["is_cost_measured"]
    assert best["mtbf_seconds"] == pytest.approx(2 * 3600, rel=0.01)
    assert best["saved_seconds"] > 0
    lost = next(one for one in told["agents"] if one["agent"] == "work")
    assert (lost["attempts"], lost["lost"], lost["completed"]) == (2, 1, 1)
