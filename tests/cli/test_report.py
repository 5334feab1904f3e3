"""`holdfast report`: one text for people, as Markdown, as a page and for programs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import holdfast
from holdfast.cli.exits import Exit
from holdfast.cli.group import Call
from holdfast.cli.report import _layout
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.progress_report import REPORT_EVENT
from tests.cli.conftest import Run


def add_finding(store: Path, title: str) -> None:
    with holdfast.open(str(store)) as service:
        data = {"title": title, "summary": "Kelp \x1b[31mgrows.", "citations": ["a book"]}
        service.append_event("WF-1", REPORT_EVENT, data, agent_id="plan", step_id="plan")


def test_people_read_how_it_stands_what_happened_and_how_to_verify(run: Run, store: Path):
    result = run("report", "WF-1", "--store", store)
    assert result.exit_code == Exit.DONE
    for told in (
        "# WF-1",
        "Status: **in",
        "planner decided: go on",
        "Why: why not",
        "Newest: WF-1@3",
        "holdfast audit verify",
    ):
        assert told in result.out


def test_what_agents_found_out_is_printed_and_the_terminal_obeys_nothing_in_it(run: Run, store: Path):
    add_finding(store, "Findings")
    result = run("report", "WF-1", "--store", store)
    assert "## Findings" in result.out and "\x1b" not in result.out


def test_it_is_made_from_the_journal_whatever_became_of_the_progress_file(run: Run, store: Path):
    add_finding(store, "Findings")
    with holdfast.open(str(store)) as service:
        service.progress.rebuild("WF-1")
    [file] = store.glob("progress/*.md")
    file.write_text("# cut short\n")
    data = run("report", "WF-1", "--store", store, "--json").data
    assert data["sections"][0]["title"] == "Findings" and data["progress_report"] == str(file)
    assert file.read_text() == "# cut short\n"
    assert str(file) in run("report", "WF-1", "--store", store).err


def test_programs_are_told_everything_or_the_text(run: Run, store: Path):
    data = run("report", "WF-1", "--store", store, "--json").data
    assert data["workflow_id"] == "WF-1" and data["checkpoints"]["kept"] == 3 and "report" not in data
    data = run("report", "WF-1", "--store", store, "--json", "--format", "md").data
    assert data["report"].startswith("# WF-1\n")


@pytest.mark.parametrize(("name", "begin"), [("r.md", "# WF-1"), ("r.html", "<!DOCTYPE"), ("r.json", "{")])
def test_a_file_is_written_in_the_format_of_its_name(run: Run, store: Path, name, begin):
    Path(name).write_text("an older one")
    result = run("report", "WF-1", "--store", store, "--out", name)
    assert result.exit_code == Exit.DONE and result.err.startswith(f"Wrote {name}")
    assert Path(name).read_text().startswith(begin)
    data = run("report", "WF-1", "--store", store, "--out", name, "--json").data
    assert data["file"] == name and data["bytes"] == Path(name).stat().st_size


def test_the_same_store_makes_the_same_file(run: Run, store: Path):
    for name in ("a.md", "a.html", "b.md", "b.html"):
        run("report", "WF-1", "--store", store, "--out", name)
    assert Path("a.md").read_bytes() == Path("b.md").read_bytes()
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()


def test_the_format_is_the_one_that_was_asked_for():
    output = Call().output
    assert _layout(output, None, None) == "md"
    assert _layout(output, None, "x.htm") == "html"
    assert _layout(output, None, "x.txt") == "md"
    assert _layout(output, "json", "x.html") == "json"


def test_a_page_can_be_piped(run: Run, store: Path):
    run("report", "WF-1", "--store", store, "--out", "r.html")
    assert run("report", "WF-1", "--store", store, "--format", "html").out == Path("r.html").read_text()
    assert (
        json.loads(run("report", "WF-1", "--store", store, "--format", "json").out)["workflow_id"] == "WF-1"
    )
    assert run("report", "WF-1", "--store", store, "--out", "-").out.startswith("# WF-1")


def test_reading_a_report_is_told_in_the_trail(run: Run, store: Path):
    run("report", "WF-1", "--store", store)
    assert "EVENTS_READ" in run("audit", "log", "--limit", "1", "--store", store).out


def test_wrong_input_is_told(run: Run, store: Path):
    result = run("report", "WF-11", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "Did you mean" in result.err
    assert run("report", "WF-1", "--store", store, "--follow").exit_code == Exit.USAGE
    result = run("report", "WF-1", "--store", store, "--out", "nowhere/r.md")
    assert result.exit_code == Exit.USAGE and "cannot be written" in result.err


def test_a_file_is_written_anew_until_the_run_ends(run: Run, store: Path, monkeypatch):
    seen: list[str] = []

    def pause(seconds: float) -> None:
        """Look at the file, then let something happen; the third time the run ends."""
        seen.append(Path("r.md").read_text())
        with holdfast.open(str(store)) as service:
            if len(seen) == 2:
                service.record_decision("WF-1", "one more", agent_id="late")
            elif len(seen) == 3:
                service.create_checkpoint("WF-1", {}, type=CheckpointType.WORKFLOW_COMPLETE)

    monkeypatch.setattr("holdfast.cli.report.time", SimpleNamespace(sleep=pause))
    result = run("report", "WF-1", "--store", store, "--out", "r.md", "--follow")
    assert result.exit_code == Exit.DONE and len(seen) == 3
    assert seen[0] == seen[1] and "late decided: one more" in seen[2]
    assert "It is done." in Path("r.md").read_text()
