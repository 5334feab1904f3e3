from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace

from holdfast.application.insight import following
from holdfast.application.insight.following import Follower, by_checkpoint, first_since, last_told
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.time import parse_timestamp
from tests.application.insight.runs import add, whole_run
from tests.application.services import make_kit


def events(kit: Kit, follower: Follower) -> list[tuple[str, int]]:
    return [(event.workflow_id, event.seq) for event in follower.changes()]


def test_only_what_is_new_is_told_and_only_once():
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    follower = Follower(kit, ["W"])
    assert follower.changes() == []
    add(service, "NOTED", {}, "a")
    add(service, "NOTED", {}, "a")
    assert events(kit, follower) == [("W", 2), ("W", 3)]
    assert follower.changes() == []


def test_without_names_every_workflow_is_followed_also_a_new_one():
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("A", {})
    follower = Follower(kit)
    service.create_checkpoint("B", {})
    service.append_event("A", "NOTED")
    assert events(kit, follower) == [("B", 1), ("A", 2)]


def test_what_happened_since_a_moment_is_told_first():
    kit = make_kit()
    service = CheckpointService(kit)
    for number in range(3):
        service.create_checkpoint("W", {"number": number})
    moments = [parse_timestamp(entry.timestamp) for entry in kit.store.entries("W")]
    assert events(kit, Follower(kit, ["W"], since=moments[1])) == [("W", 2), ("W", 3)]
    assert events(kit, Follower(kit, ["W"], since=moments[2] + timedelta(hours=1))) == []
    assert first_since(kit, "W", moments[0]) == 0
    assert first_since(kit, "W", moments[2]) == 2


def test_what_is_known_can_be_told_to_it():
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    service.append_event("W", "NOTED")
    follower = Follower(kit, ["W"])
    follower.begin_after("W", 1)
    assert events(kit, follower) == [("W", 2)]


def test_a_run_says_itself_how_it_stands():
    kit = make_kit()
    service = CheckpointService(kit)
    service.create_checkpoint("W", {})
    assert (last_told(kit, "W"), by_checkpoint(kit, "W")) == (None, "in_progress")
    add(service, "RUN_UPDATED", {"fields": {"status": "waiting"}}, "run")
    service.create_checkpoint("W", {"later": True})
    assert last_told(kit, "W") == "waiting"
    add(service, "RUN_UPDATED", {"fields": {"metadata": {}}}, "run")
    add(service, "RUN_UPDATED", {"fields": None}, "run")
    assert last_told(kit, "W") == "waiting"


def test_a_workflow_that_nothing_of_ours_runs_stands_as_its_newest_checkpoint():
    kit = make_kit()
    service = CheckpointService(kit)
    service.append_event("W", "NOTED")
    assert by_checkpoint(kit, "W") == "in_progress"
    made = service.create_checkpoint("W", {})
    service.mark_failed(made, "no fuel")
    assert by_checkpoint(kit, "W") == "failed"
    service.create_checkpoint("W", {"done": True}, type=CheckpointType.WORKFLOW_COMPLETE)
    assert by_checkpoint(kit, "W") == "completed"


def test_a_run_that_is_done_is_done():
    assert last_told(whole_run(), "W") == "completed"


def test_of_very_many_workflows_some_are_looked_at_each_time_and_those_that_moved_always(monkeypatch):
    kit = make_kit()
    service = CheckpointService(kit)
    names = [f"W-{number}" for number in range(8)]
    for name in names:
        service.create_checkpoint(name, {})
    # Each look at the clock takes a third of a turn.
    clock = count(0, following.TURN_SECONDS_MAX / 3)
    monkeypatch.setattr(following, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    follower = Follower(kit, since=datetime(2000, 1, 1, tzinfo=UTC))
    turns = [[event.workflow_id for event in follower.changes()] for _ in range(6)]
    assert sorted(name for turn in turns for name in turn) == names
    assert 0 < max(map(len, turns)) < len(names)
    service.append_event("W-0", "NOTED")
    service.append_event("W-7", "NOTED")
    assert [event.workflow_id for event in follower.changes()] == ["W-0", "W-7"]
