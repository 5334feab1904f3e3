from __future__ import annotations

from pathlib import Path

from holdfast.cli.quarantine_list import status
from holdfast.domain.quarantine import Kind, Quarantined, Release
from tests.cli.conftest import Run, damage_record


def test_nothing_in_quarantine_is_said(run: Run, store: Path):
    result = run("quarantine", "list", "--store", store)
    assert (result.exit_code, result.out, result.err) == (0, "", "Nothing is in quarantine.\n")
    assert run("quarantine", "list", "--json", "--store", store).data == {"quarantined": []}


def test_what_is_there_is_listed_with_its_reason(run: Run, store: Path):
    damage_record(store, 2)
    run("validate", "--quarantine", "--store", store)
    head, line = run("quarantine", "list", "--store", store).out.splitlines()
    assert head.split() == ["NAME", "WHAT", "STATUS", "FOUND", "(UTC)", "SIZE", "REASON"]
    assert "WF-1@2" in line and "refused" in line and "not the one that was committed" in line
    [one] = run("quarantine", "list", "--json", "--store", store).data["quarantined"]
    assert (one["place"], one["kind"], one["status"]) == ("WF-1@2", "checkpoint", "refused")
    assert one["parts"][0]["name"] == "record"


def test_how_a_report_stands_is_one_word():
    about = ("n", "p", "r", "s", 0, "t")
    assert status(Quarantined(*about)) == "kept"
    assert status(Quarantined(*about, kind=Kind.CHECKPOINT)) == "refused"
    assert status(Quarantined(*about, kind=Kind.CHECKPOINT, released=Release("t", None, "r"))) == "released"
