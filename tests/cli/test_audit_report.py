from __future__ import annotations

import csv
import io
import json
import stat
import zipfile
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.conftest import Run


@pytest.fixture
def session(run: Run, signed: tuple[Path, str]) -> str:
    """The session that holds a decision."""
    line = run("audit", "log", "--type", "AGENT_DECISION", "--store", signed[0], "--json").out
    return str(json.loads(line)["session"])


def test_a_session_is_told_in_every_format(run: Run, signed: tuple[Path, str], session: str):
    args = ("audit", "report", "--session", session, "--store", signed[0])
    lines = run(*args, "--format", "jsonl").out.splitlines()
    assert any(json.loads(line).get("payload", {}).get("rationale") == "why not" for line in lines)
    rows = list(csv.DictReader(io.StringIO(run(*args, "--format", "csv").out)))
    assert len(rows) == len(lines) and "why not" in {row["rationale"] for row in rows}
    page = run(*args).out
    assert page.startswith("<!DOCTYPE html>") and "why not" in page


def test_a_report_for_programs_is_one_object(run: Run, signed: tuple[Path, str], session: str):
    told = run("--json", "audit", "report", "--session", session, "--store", signed[0]).data
    assert (told["session"], told["format"]) == (session, "html")
    assert told["report"].startswith("<!DOCTYPE html>") and "why not" in told["report"]


def test_a_report_goes_into_a_private_file(run: Run, signed: tuple[Path, str], session: str):
    args = ("audit", "report", "--session", session, "--store", signed[0])
    told = run(*args, "--out", "report.html", "--json").data
    assert told["bytes"] == Path("report.html").stat().st_size
    assert stat.S_IMODE(Path("report.html").stat().st_mode) == 0o600
    assert "Wrote report.csv" in run(*args, "--format", "csv", "--out", "report.csv").err


def test_a_bundle_holds_everything_and_a_signed_statement(run: Run, signed: tuple[Path, str], session: str):
    args = ("audit", "report", "--session", session, "--format", "bundle", "--store", signed[0])
    assert run(*args).exit_code == Exit.USAGE
    assert run(*args, "--out", "bundle.zip").exit_code == 0
    names = set(zipfile.ZipFile("bundle.zip").namelist())
    assert {"report.html", "report.csv", "report.jsonl", "SHA256SUMS", "statement.note"} <= names
    assert any(name.startswith("export/") for name in names)


def test_a_pack_holds_the_controls_that_were_asked_for(run: Run, signed: tuple[Path, str]):
    args = ("audit", "report", "--store", signed[0])
    assert run(*args, "--pack", "soc2", "--out", "soc2").exit_code == 0
    assert {path.name[:5] for path in Path("soc2/controls").iterdir()} == {"soc2-"}
    told = run(*args, "--pack", "gdpr", "--pack", "ai-act", "--out", "both", "--json").data
    assert {control["control"].partition("-art")[0] for control in told["controls"]} == {"gdpr", "ai-act"}
    proof = next(Path("soc2/proofs").glob("*.tlog-proof"))
    assert run("audit", "verify", proof, "--key", signed[1]).exit_code == 0


def test_a_pack_of_the_same_entries_is_the_same(run: Run, signed: tuple[Path, str]):
    store, _ = signed
    size = run("audit", "anchor", "--store", store, "--json").data["size"]
    for folder in ("one", "two"):
        args = ("audit", "report", "--pack", "soc2", "--at", size, "--out", folder, "--store", store)
        assert run(*args).exit_code == 0
    sums = [Path(folder, "SHA256SUMS").read_text() for folder in ("one", "two")]
    assert sums[0] == sums[1]


def test_what_does_not_go_together_is_wrong_usage(run: Run, store: Path):
    for args in (
        (),
        ("--session", "s-1", "--pack", "soc2"),
        ("--pack", "soc2"),
        ("--session", "s-1", "--at", 1),
    ):
        assert run("audit", "report", *args, "--store", store).exit_code == Exit.USAGE


def test_a_report_into_a_folder_that_is_not_there_is_wrong_usage_and_not_told(
    run: Run, signed: tuple[Path, str], session: str
):
    failed = run("audit", "report", "--session", session, "--out", "nowhere/r.html", "--store", signed[0])
    assert failed.exit_code == Exit.USAGE and "nowhere/r.html cannot be written" in failed.err
    assert run("audit", "log", "--type", "TRAIL_EXPORTED", "--store", signed[0]).out == ""


def test_a_session_that_is_not_there_is_not_found(run: Run, store: Path):
    assert run("audit", "report", "--session", "s1", "--store", store).exit_code == Exit.NOT_FOUND


def test_a_report_is_told_in_the_trail(run: Run, signed: tuple[Path, str], session: str):
    run("audit", "report", "--session", session, "--format", "csv", "--store", signed[0])
    line = run("audit", "log", "--type", "TRAIL_EXPORTED", "--store", signed[0], "--json").out
    assert json.loads(line)["data"] == {"format": "csv", "session": session}
