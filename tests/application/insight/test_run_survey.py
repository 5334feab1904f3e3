"""Workflows are looked at a few at a time, and what has not changed is not read again."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from holdfast.application.insight.run_survey import RunStanding, RunSurvey
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import CheckpointCorruptError
from tests.application.services import make_service
from tests.damage import KINDS, Spoiler

ENOUGH_SECONDS = 60.0


@pytest.mark.parametrize("kind", KINDS)
def test_each_store_tells_how_its_workflows_stand(kind: str, tmp_path: Path) -> None:
    spoiler = Spoiler(kind, tmp_path)
    with spoiler.opened() as service:
        for name in ("idle", "taken", "over"):
            service.create_checkpoint(name, {"a": 1})
        service.create_checkpoint("over", {"a": 2}, type=CheckpointType.WORKFLOW_COMPLETE)
        service.append_event("only-events", "NOTED", {})
        failed = service.create_checkpoint("failed", {"a": 1})
        service.mark_failed(failed, "it broke")
        service.acquire_lease("taken", "somebody")
        numbers = RunSurvey(service._engine.kit.store).advance(ENOUGH_SECONDS)
    assert numbers.is_complete
    assert numbers.runs == {RunStanding.IDLE: 2, RunStanding.RUNNING: 1, RunStanding.FAILED: 1}
    assert numbers.last_checkpoint_at is not None


def test_a_lease_that_comes_and_goes_is_seen() -> None:
    service = make_service()
    service.create_checkpoint("W", {"a": 1})
    survey = RunSurvey(service._engine.kit.store)
    lease = service.acquire_lease("W", "somebody")
    assert survey.advance(ENOUGH_SECONDS).runs == {RunStanding.RUNNING: 1}
    service.release_lease(lease)
    assert survey.advance(ENOUGH_SECONDS).runs == {RunStanding.IDLE: 1}


def test_changes_that_repeat_much_of_a_state_take_less_than_states() -> None:
    service = make_service()
    for number in range(20):
        service.create_checkpoint("W", {"a": number, "text": "word " * 2000})
    numbers = RunSurvey(service._engine.kit.store).advance(ENOUGH_SECONDS)
    assert numbers.dedup_ratio is not None and numbers.dedup_ratio > 5
    assert RunSurvey(make_service()._engine.kit.store).advance(ENOUGH_SECONDS).dedup_ratio is None


def test_only_what_there_is_time_for_is_looked_at() -> None:
    service = make_service()
    for number in range(5):
        service.create_checkpoint(f"W-{number}", {"a": 1})
    clock = count()
    survey = RunSurvey(service._engine.kit.store, lambda: float(next(clock)))
    seen = [survey.advance(2.0) for _ in range(3)]
    assert [numbers.runs.total() for numbers in seen] == [2, 4, 5]
    assert [numbers.is_complete for numbers in seen] == [False, False, True]


def test_what_has_not_changed_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service()
    store = service._engine.kit.store
    for name in ("A", "B"):
        service.create_checkpoint(name, {"a": 1})
    survey, read = RunSurvey(store), []
    entries = store.entries

    def counting(workflow_id: str, *, newest_first: bool = False):
        read.append(workflow_id)
        return entries(workflow_id, newest_first=newest_first)

    monkeypatch.setattr(store, "entries", counting)
    survey.advance(ENOUGH_SECONDS)
    service.create_checkpoint("B", {"a": 2})
    read.clear()
    survey.advance(ENOUGH_SECONDS)
    assert read == ["B"]


def test_one_that_cannot_be_read_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service()
    store = service._engine.kit.store
    for name in ("bad", "good"):
        service.create_checkpoint(name, {"a": 1})
    head = store.head

    def failing(workflow_id: str):
        if workflow_id == "bad":
            raise CheckpointCorruptError("its listing is damaged")
        return head(workflow_id)

    survey = RunSurvey(store)
    monkeypatch.setattr(store, "head", failing)
    assert survey.advance(ENOUGH_SECONDS).runs == {RunStanding.UNREADABLE: 1, RunStanding.IDLE: 1}
    monkeypatch.setattr(store, "head", head)
    assert survey.advance(ENOUGH_SECONDS).runs == {RunStanding.IDLE: 2}


def test_one_that_is_gone_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service()
    store = service._engine.kit.store
    for name in ("A", "B"):
        service.create_checkpoint(name, {"a": 1})
    survey = RunSurvey(store)
    survey.advance(ENOUGH_SECONDS)
    monkeypatch.setattr(store, "workflows", lambda: iter(["A"]))
    assert survey.advance(ENOUGH_SECONDS).runs == {RunStanding.IDLE: 1}


def test_a_listing_that_breaks_off_forgets_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service()
    store = service._engine.kit.store
    for name in ("A", "B"):
        service.create_checkpoint(name, {"a": 1})
    survey = RunSurvey(store)
    survey.advance(ENOUGH_SECONDS)

    def breaking_off():
        yield "A"
        raise CheckpointCorruptError("the list is cut off")

    workflows = store.workflows
    monkeypatch.setattr(store, "workflows", breaking_off)
    with pytest.raises(CheckpointCorruptError):
        survey.advance(ENOUGH_SECONDS)
    monkeypatch.setattr(store, "workflows", workflows)
    assert survey.advance(ENOUGH_SECONDS).runs == {RunStanding.IDLE: 2}
