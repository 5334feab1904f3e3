"""The trail is counted as it grows, each entry once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.application.insight import trail_counting
from holdfast.application.insight.trail_counting import TrailCount, TrailNumbers, recovery_outcome
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import NoValidCheckpointError
from holdfast.domain.telemetry import RecoveryOutcome
from holdfast.ports import Store
from tests.application.services import make_service
from tests.damage import KINDS, Spoiler


def line(kind: str, outcome: str = "success", ts: str = "2026-01-11T14:30:00.000000Z", **data: Any) -> bytes:
    return json.dumps(
        {"ts": ts, "type": kind, "outcome": outcome, "data": data}, separators=(",", ":")
    ).encode()


def counted(count: TrailCount, store: Store) -> TrailNumbers:
    return count.advance(int(store.stats()["audit_entries"]))


def asked_of(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Answer from which leaf on the log is read, each time it is."""
    asked: list[int] = []
    leaves = store.leaves

    def told(*, after: int = 0) -> Iterator[bytes]:
        asked.append(after)
        return leaves(after=after)

    monkeypatch.setattr(store, "leaves", told)
    return asked


@pytest.mark.parametrize("kind", KINDS)
def test_checkpoints_recoveries_and_verifications_are_found_in_every_store(kind: str, tmp_path: Path) -> None:
    spoiler = Spoiler(kind, tmp_path)
    spoiler.fill(4)
    spoiler.spoil_record(4)
    with spoiler.opened() as service:
        store = service._engine.kit.store
        count = TrailCount(store)
        first = counted(count, store)
        service.create_checkpoint("sound", {"a": 1})
        service.recover_workflow("sound")
        service.recover_workflow("WF")
        service.audit.verify()
        service.flush()
        numbers = counted(count, store)
    assert first.checkpoints == 0 and first.last_checkpoint_at is not None
    # The recovered state of the damaged one was recorded, too.
    assert numbers.checkpoints == 2
    assert numbers.recoveries == {RecoveryOutcome.OK: 1, RecoveryOutcome.FALLBACK: 1}
    assert numbers.is_ok is True and numbers.verified_at is not None
    assert numbers.last_checkpoint_at is not None


def test_what_was_counted_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service()
    store = service._engine.kit.store
    count, asked = TrailCount(store), asked_of(store, monkeypatch)
    totals = [count.advance(0).checkpoints]
    for number in range(3):
        service.create_checkpoint("W", {"a": number})
        totals.append(count.advance(int(store.stats()["audit_entries"])).checkpoints)
    assert totals == [0, 1, 2, 3]
    # The first commit also begins the session.
    assert asked == [0, 0, 2, 3]


def test_it_begins_near_the_end_and_takes_so_many_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail_counting, "TAIL", 3)
    monkeypatch.setattr(trail_counting, "LINES_MAX", 2)
    service = make_service()
    for number in range(10):
        service.create_checkpoint("W", {"a": number})
    store = service._engine.kit.store
    count, asked = TrailCount(store), asked_of(store, monkeypatch)
    assert [count.advance(11).checkpoints for _ in range(3)] == [0, 1, 1]
    assert asked == [8, 10, 11]


def test_a_recovery_that_found_nothing_is_a_failure_and_other_refusals_are_none() -> None:
    numbers = TrailNumbers()
    numbers.take(
        [
            line(AuditType.OPERATION_REFUSED, "refused", code=NoValidCheckpointError.code),
            line(AuditType.OPERATION_REFUSED, "refused", code="lease_held"),
        ]
    )
    assert numbers.recoveries[RecoveryOutcome.FAILED] == 1 and numbers.recoveries.total() == 1


def test_a_fault_stays_one_until_the_whole_log_is_verified_again() -> None:
    numbers, standing = TrailNumbers(), []
    for told in (
        line(AuditType.TRAIL_VERIFIED, level="chain"),
        line(AuditType.INTEGRITY_FAILED, "failure"),
        line(AuditType.TRAIL_VERIFIED, session="s-1"),
        line(AuditType.TRAIL_VERIFIED, level="chain"),
        line(AuditType.TRAIL_VERIFIED, "failure", session="s-1"),
    ):
        numbers.take([told])
        standing.append(numbers.is_ok)
    assert standing == [True, False, False, True, False]


@pytest.mark.parametrize(
    "bad", [b'{"type":"TRAIL_VERIFIED"', b'{"type":"TRAIL_VERIFIED"}', b'[{"type":"TRAIL_VERIFIED"}]']
)
def test_a_damaged_line_is_passed_over(bad: bytes) -> None:
    numbers = TrailNumbers()
    assert numbers.take([bad, line(AuditType.CHECKPOINT_CREATED)]) == 2
    assert numbers.checkpoints == 1 and numbers.is_ok is None


def test_a_fact_that_looks_like_a_type_counts_for_nothing() -> None:
    numbers = TrailNumbers()
    numbers.take([line("APPLICATION_OWN", type="CHECKPOINT_CREATED")])
    assert numbers == TrailNumbers()


def test_parts_join_to_what_they_tell_together() -> None:
    earlier, later = TrailNumbers(), TrailNumbers()
    earlier.take([line(AuditType.CHECKPOINT_CREATED), line(AuditType.TRAIL_VERIFIED, level="chain")])
    later.take([line(AuditType.CHECKPOINT_CREATED, ts="2026-01-11T14:30:01.000000Z")])
    both = earlier.joined(later)
    assert both.checkpoints == 2 and both.is_ok is True and both.verified_at == earlier.verified_at
    assert both.last_checkpoint_at == later.last_checkpoint_at


def test_what_gets_its_place_is_not_counted_twice(tmp_path: Path) -> None:
    with Spoiler("postgres", tmp_path).opened() as service:
        store = service._engine.kit.store
        service.create_checkpoint("W", {"a": 1})
        count = TrailCount(store)
        totals = [counted(count, store).checkpoints]
        service.create_checkpoint("W", {"a": 2})
        totals.append(counted(count, store).checkpoints)
        store.integrate()
        totals.append(counted(count, store).checkpoints)
        service.create_checkpoint("W", {"a": 3})
        totals.append(counted(count, store).checkpoints)
    assert totals == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("kind", "outcome", "facts", "ended"),
    [
        ("WORKFLOW_RECOVERED", "success", {}, RecoveryOutcome.OK),
        ("WORKFLOW_RECOVERED", "success", {"passed_over": 1}, RecoveryOutcome.FALLBACK),
        ("WORKFLOW_RECOVERED", "failure", {}, RecoveryOutcome.FAILED),
        ("OPERATION_REFUSED", "refused", {"code": "event_replay_failed"}, RecoveryOutcome.FAILED),
        ("OPERATION_REFUSED", "refused", {"code": "lease_held"}, None),
        ("CHECKPOINT_CREATED", "success", {}, None),
    ],
)
def test_an_entry_tells_how_a_recovery_ended(
    kind: str, outcome: str, facts: dict[str, Any], ended: RecoveryOutcome | None
) -> None:
    assert recovery_outcome(kind, outcome, facts) is ended
