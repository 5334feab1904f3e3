"""What a legal hold covers stays, whoever wants it gone."""

from __future__ import annotations

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointNotFoundError,
    InvalidIdError,
    LegalHoldError,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.trail import decode_entry


@pytest.fixture
def service() -> CheckpointService:
    config = Config(session="s-1", actor="ann", background=False, retain=False)
    service = CheckpointService(build_kit(MemoryStore(), config))
    for workflow_id in ("W", "V"):
        for n in range(5):
            service.create_checkpoint(workflow_id, {"n": n})
    return service


def told(service: CheckpointService) -> list[str]:
    service.flush()
    return [decode_entry(line, None).type for line in service._engine.kit.store.leaves()]


def test_a_held_workflow_is_neither_pruned_nor_deleted_and_says_why(service: CheckpointService) -> None:
    hold = service._engine.holds.place(workflow_id="W", reason="case 17")
    for removing in (
        lambda: service.prune_checkpoints("W", retain_count=1, retain_days=0),
        lambda: service.delete("W@1"),
    ):
        with pytest.raises(LegalHoldError, match="case 17") as refusal:
            removing()
        assert hold.id in refusal.value.place
    assert len(service.list_checkpoints("W")) == 5
    assert int(service.prune_checkpoints("V", retain_count=2, retain_days=0)) == 3
    assert service.prune_checkpoints("W", retain_count=1, retain_days=0, dry_run=True).dry_run
    assert told(service).count(AuditType.OPERATION_REFUSED) == 2


def test_a_released_hold_no_longer_stands_and_both_are_told(service: CheckpointService) -> None:
    holds = service._engine.holds
    hold = holds.place(workflow_id="W", reason="case 17")
    other = holds.place(reason="audit of the year")
    assert holds.listing() == [hold, other]
    holds.release(hold.id, reason="case closed")
    with pytest.raises(LegalHoldError, match="audit of the year"):
        service.delete("W@1")
    holds.release(other.id, reason="done")
    assert service.delete("W@1")
    types = told(service)
    assert types.count(AuditType.HOLD_PLACED) == 2
    assert types.count(AuditType.HOLD_RELEASED) == 2
    assert holds.listing() == []


def test_a_hold_on_a_subject_covers_what_is_about_it(service: CheckpointService) -> None:
    holds = service._engine.holds
    holds.place(subject="alice", reason="claim")
    with pytest.raises(LegalHoldError):
        holds.check(subject="alice")
    holds.check(subject="bob")
    holds.check(workflow_id="W")
    facts = [decode_entry(line, None).facts for line in service._engine.kit.store.leaves()]
    assert not any("alice" in str(fact) for fact in facts)


def test_retention_leaves_a_held_workflow_alone(service: CheckpointService) -> None:
    engine = service._engine
    engine.holds.place(workflow_id="W", reason="case 17")
    assert engine.holds.stands_against("W")
    assert not engine.holds.stands_against("V")


def test_what_is_no_hold_is_refused(service: CheckpointService) -> None:
    holds = service._engine.holds
    with pytest.raises(InvalidIdError):
        holds.place(workflow_id="W", reason="")
    with pytest.raises(CheckpointNotFoundError, match="no such hold"):
        holds.release("nothing", reason="because")


_WRONG = b'{"id":"a","workflow_id":[1],"subject":null,"reason":"r","placed_by":null,"placed_at":"t"}'


@pytest.mark.parametrize("data", [b"torn", b"[]", b'{"id":1}', _WRONG, b"[" * 100_000])
def test_a_hold_that_cannot_be_read_still_stands(service: CheckpointService, data: bytes) -> None:
    service._engine.kit.store.commit([Commit(NO_WORKFLOW, Head(), files={"holds/a": data})])
    with pytest.raises(CheckpointCorruptError, match="nothing may be removed"):
        service.delete("W@1")


def test_a_hold_on_a_person_keeps_every_workflow_that_is_about_them(service: CheckpointService) -> None:
    service.subjects.declare("W", "alice")
    service.holds.place(subject="alice", reason="case 18")
    for removing in (
        lambda: service.prune_checkpoints("W", retain_count=1, retain_days=0),
        lambda: service.delete("W@1"),
        lambda: service.erasure.workflow("W", reason="request 3"),
    ):
        with pytest.raises(LegalHoldError, match="case 18"):
            removing()
    assert service.holds.stands_against("W")
    assert service.delete("V@1")


def test_a_hold_that_cannot_be_read_can_be_released(service: CheckpointService) -> None:
    service._engine.kit.store.commit([Commit(NO_WORKFLOW, Head(), files={"holds/a": b"torn"})])
    assert service.holds.release("a", reason="looked at it").reason == "unreadable"
    assert service.delete("W@1")


def test_a_hold_on_a_person_covers_forks_of_what_is_about_them(service: CheckpointService) -> None:
    service.subjects.declare("W", "ann")
    service.fork_workflow("W@latest", "F")
    service.fork_workflow("F@latest", "G")
    service.holds.place(subject="ann", reason="case 18")
    for workflow_id in ("W", "F", "G"):
        with pytest.raises(LegalHoldError, match="case 18"):
            service.prune_checkpoints(workflow_id, retain_count=1, retain_days=0)
        with pytest.raises(LegalHoldError, match="case 18"):
            service.erasure.workflow(workflow_id, reason="asked for")
    service.prune_checkpoints("V", retain_count=1, retain_days=0)
