"""`holdfast progress`: the report is made from the journal, whatever became of its file."""

from __future__ import annotations

from pathlib import Path

import holdfast
from holdfast.cli.exits import Exit
from holdfast.domain.progress_report import REPORT_EVENT
from tests.cli.conftest import Run


def report(store: Path, title: str) -> None:
    with holdfast.open(str(store)) as service:
        data = {"title": title, "summary": "Kelp \x1b[31mgrows.", "citations": ["a book"]}
        service.append_event("WF-1", REPORT_EVENT, data, agent_id="plan", step_id="plan")


def test_the_report_is_printed_and_the_terminal_obeys_nothing_in_it(run: Run, store: Path) -> None:
    report(store, "Findings")
    result = run("progress", "WF-1", "--store", store)
    assert result.exit_code == Exit.DONE
    assert "Findings" in result.out and "\x1b" not in result.out


def test_a_report_whose_file_was_left_behind_is_whole(run: Run, store: Path) -> None:
    report(store, "Findings")
    files = list(store.glob("progress/*.md"))
    for file in files:
        file.write_text("# cut short\n")
    data = run("progress", "WF-1", "--store", store, "--json").data
    assert data["workflow_id"] == "WF-1" and "Findings" in data["report"]
    assert data["file"] == (str(files[0]) if files else None)
    assert [file.read_text() for file in files] == ["# cut short\n"] * len(files)


def test_reading_a_report_is_told_in_the_trail(run: Run, store: Path) -> None:
    run("progress", "WF-1", "--store", store)
    assert "EVENTS_READ" in run("audit", "log", "--limit", "1", "--store", store).out


def test_a_workflow_that_is_not_there_is_told(run: Run, store: Path) -> None:
    result = run("progress", "WF-11", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "Did you mean" in result.err
