from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.application.insight import run_report
from holdfast.application.insight.event_story import Kind
from holdfast.application.insight.run_report import as_html, as_markdown, report
from holdfast.application.insight.run_report_values import AgentLine, StageLine
from holdfast.application.progress_files import ProgressFiles
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointNotFoundError, ChecksumMismatchError, InvalidIdError
from holdfast.testing import FixedClock
from tests.application.insight.runs import HOSTILE, add, hostile_run, whole_run
from tests.application.services import make_kit


def test_everything_that_people_ask_is_in_it():
    found = report(whole_run(), "W")
    assert (found.workflow_id, found.status, found.program) == ("W", "completed", "team")
    assert (found.steps_done, found.steps_total) == (2, 3)
    assert found.stages == (
        StageLine("plan", "completed", ("plan",)),
        StageLine("write", "begun", ("write",)),
        StageLine("check", "begun", ("check",)),
    )
    assert found.agents == (
        AgentLine("plan", begun=1, done=1, seconds=75.0),
        AgentLine("write", done=1, failed=1, seconds=3700.0),
        AgentLine("check", skipped=1),
    )
    assert [moment.text for moment in found.of(Kind.DECISION)] == ["plan decided: use kelp"]
    assert [moment.detail for moment in found.of(Kind.APPROVAL)] == ["", "read"]
    assert [moment.kind for moment in found.of(Kind.FAILURE, Kind.RECOVERY)] == [Kind.FAILURE, Kind.RECOVERY]
    assert found.costs == {"tokens": 120, "cost_usd": 0.25}
    assert (found.checkpoints.kept, found.checkpoints.newest) == (2, "W@2")
    assert [section.title for section in found.sections] == ["Offers", "write"]
    assert found.notes == () and found.left_out == 0
    assert found.began_at is not None and found.last_at is not None and found.began_at < found.last_at


def test_it_ends_where_the_journal_does():
    kit = whole_run()
    found = report(kit, "W")
    head = kit.store.head("W")
    assert (found.last_event, found.event_hash) == (head.event_seq, head.event_hash)
    assert found.checkpoints.checksum == head.checksum


def test_a_pin_is_not_the_last_that_was_heard_of_a_run():
    kit = make_kit(clock=FixedClock(datetime(2026, 1, 1, tzinfo=UTC), timedelta(seconds=1)))
    service = CheckpointService(kit)
    service.mark_completed(service.create_checkpoint("W", {}))
    before = report(kit, "W").last_at
    service.pin("W@1")
    assert report(kit, "W").last_at == before


def test_of_the_same_store_it_says_the_same():
    one, other = (report(kit, "W") for kit in [whole_run()] for _ in range(2))
    assert as_markdown(one) == as_markdown(other) and as_html(one) == as_html(other)


def test_the_progress_report_is_in_it_word_for_word():
    kit = whole_run()
    progress = ProgressFiles(kit).rebuild("W")
    head, _, sections = progress.partition("\n")
    told = as_markdown(report(kit, "W"))
    assert told.startswith(head) and told.endswith(sections)


def test_a_workflow_without_runs_is_told_by_its_checkpoints_and_events():
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    service.append_event("W", "NOTED", cost={"usd": 0.5, "tokens": 3, "model": "m", "fast": True})
    service.append_event("W", "NOTED", cost={"usd": 0.25})
    found = report(kit, "W")
    assert (found.status, found.program, found.stages, found.agents) == ("in_progress", "", (), ())
    assert found.costs == {"usd": 0.75, "tokens": 3}


def test_a_stage_that_is_in_no_plan_is_told_after_the_others():
    kit = make_kit()
    service = CheckpointService(kit)
    add(service, "STAGE_UPDATED", {"stage": "x", "state": {}}, "run")
    assert report(kit, "W").stages == (StageLine("x", "in_progress"),)


def test_a_workflow_without_a_checkpoint_is_told_too():
    kit = make_kit()
    CheckpointService(kit).append_event("W", "NOTED")
    found = report(kit, "W")
    assert found.checkpoints.newest == "" and found.checkpoints.kept == 0
    assert "How to verify" in as_markdown(found) and "How to verify" in as_html(found)


def test_of_a_long_run_the_beginning_and_the_end_are_told(monkeypatch):
    monkeypatch.setattr(run_report, "FIRST_MOMENTS", 2)
    monkeypatch.setattr(run_report, "LAST_MOMENTS", 3)
    kit = make_kit()
    service = CheckpointService(kit)
    for number in range(12):
        add(service, "DECISION_RECORDED", {"description": f"number {number}"}, "a")
    found = report(kit, "W")
    assert [moment.seq for moment in found.moments] == [1, 2, 10, 11, 12]
    assert (found.left_out, found.last_told) == (7, 3)
    lines = as_markdown(found).partition("## What happened\n\n")[2].splitlines()
    assert lines[2] == "- ... 7 more ..." and lines[3].endswith("number 9")
    assert as_html(found).count("... 7 more ...") == 1


def test_what_was_removed_is_counted():
    kit = make_kit()
    service = CheckpointService(kit)
    for number in range(5):
        service.create_checkpoint("W", {"number": number})
    service.prune_checkpoints("W", retain_count=2, retain_days=0)
    found = report(kit, "W")
    assert (found.checkpoints.kept, found.checkpoints.removed) == (2, 3)
    assert "Removed by retention: 3" in as_markdown(found)


def test_a_workflow_that_is_not_there_is_told():
    with pytest.raises(CheckpointNotFoundError):
        report(make_kit(), "W")
    with pytest.raises(InvalidIdError):
        report(make_kit(), "")


def test_an_event_that_was_changed_is_no_report(monkeypatch):
    kit = whole_run()
    real = type(kit.store).events

    def changed(self, workflow_id, *, after=0):
        return (line.replace(b"kelp", b"sand") for line in real(self, workflow_id, after=after))

    monkeypatch.setattr(type(kit.store), "events", changed)
    with pytest.raises(ChecksumMismatchError):
        report(kit, "W")


def test_a_state_that_cannot_be_read_is_noted_and_the_rest_is_told(monkeypatch):
    kit = whole_run()

    def damaged(self, workflow_id, first, last):
        raise ChecksumMismatchError("the record is not the one that was committed", place="W@2")

    monkeypatch.setattr(type(kit.store), "records", damaged)
    monkeypatch.setattr(type(kit.store), "keyframes", lambda self, workflow_id: [])
    found = report(kit, "W")
    assert found.status == "completed" and found.program == ""
    assert "cannot be read" in found.notes[0]
    assert "cannot be read" in as_markdown(found) and "cannot be read" in as_html(found)


def test_nothing_of_a_store_becomes_more_than_text():
    kit = hostile_run()
    [name] = kit.store.workflows()
    found = report(kit, name)
    page = as_html(found)
    for tag in ("<script", "<i>", "<img"):
        assert tag not in page
    assert "\x1b" not in page and "\u202e" not in page
    lines = as_markdown(found).partition("# What was found out")[0].splitlines()
    # What is indented is code.
    text = "\n".join(line for line in lines if not line.startswith("    holdfast "))
    assert "<script" not in text.replace("\\<script", "")
    assert "\x1b" not in text and "\u202e" not in text
    assert HOSTILE.partition(" ")[0] not in text


def test_a_long_run_tells_how_far_it_is(monkeypatch):
    monkeypatch.setattr(run_report, "_TOLD_EVERY", 5)
    told: list[tuple[int, int]] = []
    report(whole_run(), "W", lambda done, total: told.append((done, total)))
    assert told == [(5, 15), (10, 15), (15, 15)]


def test_what_begins_with_the_end_of_another_is_counted():
    kit = make_kit()
    service = CheckpointService(kit)
    add(
        service,
        "AGENT_COMPLETED",
        {"attempt": 1, "next": {"step_id": "b#1", "agent": "b", "attempt": 1}},
        "a",
    )
    assert report(kit, "W").agents == (AgentLine("a", done=1), AgentLine("b", begun=1))
