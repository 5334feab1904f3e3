from __future__ import annotations

from holdfast.application.service import CheckpointService
from holdfast.cli.watch_rows import HEAD, Watch
from holdfast.domain.checkpoint import CheckpointType
from tests.application.insight.runs import add, whole_run
from tests.application.services import make_kit


def begun() -> tuple[CheckpointService, Watch]:
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    return service, Watch(kit, ["W"], None, ())


def test_a_row_follows_its_workflow():
    service, watch = begun()
    assert watch.look() == [] and watch.cells(5) == [("W", "in_progress", "1", "0", "0", "-", "")]
    add(service, "RUN_UPDATED", {"fields": {"status": "in_progress"}}, "run")
    add(service, "AGENT_COMPLETED", {"attempt": 1}, "plan")
    add(service, "AGENT_FAILED", {"attempt": 1, "error": "no fuel"}, "write")
    assert [change.story.text for change in watch.look()][1:] == ["plan is done", "write failed: no fuel"]
    [row] = watch.cells(5)
    assert len(row) == len(HEAD)
    assert row[:5] == ("W", "in_progress", "1", "1", "1") and row[-1] == "write failed: no fuel"


def test_a_run_that_waits_goes_on_waiting_when_a_checkpoint_is_made():
    service, watch = begun()
    add(service, "RUN_UPDATED", {"fields": {"status": "waiting"}}, "run")
    service.create_checkpoint("W", {"more": True})
    assert [change.status for change in watch.look()] == ["waiting", "waiting"]
    assert not watch.is_over("done")


def test_it_is_over_when_all_have_ended_or_one_has_failed():
    service, _ = begun()
    service.create_checkpoint("V", {})
    both = Watch(service._engine.kit, ["W", "V"], None, ())
    assert not both.is_over("done") and not both.is_over(None)
    service.mark_failed("W@1", "no fuel")
    both.look()
    assert both.is_over("failed") and not both.is_over("done") and both.failed == ["W"]
    service.create_checkpoint("V", {"done": True}, type=CheckpointType.WORKFLOW_COMPLETE)
    both.look()
    assert both.is_over("done")


def test_what_has_ended_before_is_known_at_once():
    watch = Watch(whole_run(), ["W"], None, ())
    assert watch.look() == [] and watch.is_over("done") and watch.is_over("failed") and not watch.failed


def test_only_what_is_asked_for_is_told_and_the_rest_still_counts():
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    watch = Watch(kit, [], None, ("failure", "NOTED"))
    add(service, "AGENT_COMPLETED", {"attempt": 1}, "plan")
    add(service, "NOTED", {}, "plan")
    service.mark_failed("W@1", "no fuel")
    assert [change.event.type for change in watch.look()] == ["NOTED", "CHECKPOINT_STATUS"]
    assert watch.cells(1)[0][3] == "1" and watch.is_over("done") and watch.failed == ["W"]
    assert not Watch(kit, [], None, ()).is_over("done")


def test_the_rows_that_changed_last_are_shown():
    kit = make_kit()
    service = CheckpointService(kit)
    watch = Watch(kit, [], None, ())
    for name in ("A", "B", "C"):
        service.create_checkpoint(name, {})
    watch.look()
    assert [row[0] for row in watch.cells(2)] == ["C", "B"]
    assert len(watch.cells(0)) == 1
