"""A workflow is recovered by one at a time: threads, services and processes, the dead ones excepted."""

from __future__ import annotations

import threading

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.recovery.claiming import Claims
from holdfast.application.recovery.owners import own_name
from holdfast.domain.errors import CheckpointWriteError, LeaseHeldError, LeaseLostError
from holdfast.domain.record import Lease
from holdfast.testing import FailingStore
from tests.application.resumptions import PATIENT_SECONDS, Worker, make_worker

#: A lease that is renewed while a test looks.
SHORT_SECONDS = 0.06


def claims_of(worker: Worker, lease_seconds: float = 30.0) -> Claims:
    engine = worker.service._engine
    return Claims(worker.kit, engine.trail, engine.writer, lease_seconds=lease_seconds)


def dead_owner() -> str:
    """Name a process of this machine that does not exist: this one, had it begun at another time."""
    name, _, start = own_name("recovery").rpartition(":")
    return f"{name}:{int(start) + 1}"


def test_a_workflow_is_ours_inside_and_free_afterwards() -> None:
    worker = make_worker()
    with claims_of(worker).alone("W") as claim:
        lease = worker.service.lease_of("W")
        assert lease is not None and lease.is_live and lease.owner.startswith("recovery-")
        assert not claim.is_over.is_set()
        worker.service.create_checkpoint("W", {"n": 1})
    assert claim.is_over.is_set()
    assert worker.service.lease_of("W") is None


def test_another_service_has_to_wait() -> None:
    store = MemoryStore()
    ann, bob = make_worker(store), make_worker(store)
    with claims_of(ann).alone("W"), pytest.raises(LeaseHeldError), claims_of(bob).alone("W"):
        raise AssertionError("both have it")
    with claims_of(bob).alone("W"):
        pass


def test_another_thread_of_the_same_service_has_to_wait() -> None:
    claims = claims_of(make_worker())
    refused: list[str] = []

    def other() -> None:
        try:
            with claims.alone("W"):
                refused.append("not at all")
        except LeaseHeldError as problem:
            refused.append(problem.message)

    with claims.alone("W"), claims.alone("V"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert refused == ["another thread of this process recovers the workflow at this moment"]


def test_the_same_thread_may_enter_again_and_gets_the_same_claim() -> None:
    worker = make_worker()
    claims = claims_of(worker)
    with claims.alone("W") as outer:
        with claims.alone("W") as inner:
            assert inner is outer
        assert not outer.is_over.is_set()
        assert worker.service.lease_of("W") is not None


def test_a_lease_that_was_acquired_before_serves_and_stays() -> None:
    worker = make_worker()
    lease = worker.service.acquire_lease("W", "ann", ttl_seconds=600)
    with claims_of(worker).alone("W"):
        assert worker.service.lease_of("W") == lease
    assert worker.service.lease_of("W") == lease


def test_the_lease_of_a_process_that_died_is_ended_at_once_and_told() -> None:
    store = MemoryStore()
    store.acquire("W", dead_owner(), 600)
    worker = make_worker(store)
    with claims_of(worker).alone("W") as claim:
        assert "is dead" in claim.notes[0]
    with pytest.raises(LeaseHeldError):
        store.acquire("W", "somebody elsewhere", 600)
        with claims_of(worker).alone("W"):
            raise AssertionError("it may be alive")


def test_a_lease_is_renewed_while_work_goes_on() -> None:
    renewed = threading.Event()

    class Watched(FailingStore):
        def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
            answer = super().renew(lease, ttl_seconds)
            if self.calls["renew"] >= 2:
                renewed.set()
            return answer

    worker = make_worker(Watched())
    with claims_of(worker, SHORT_SECONDS).alone("W") as claim:
        assert renewed.wait(PATIENT_SECONDS)
        assert not claim.is_over.is_set()


def test_a_lease_that_somebody_gave_more_time_keeps_it() -> None:
    renewed = threading.Event()

    class Watched(FailingStore):
        def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
            seconds.append(ttl_seconds)
            renewed.set()
            return super().renew(lease, ttl_seconds)

    seconds: list[float] = []
    worker = make_worker(Watched())
    worker.service.acquire_lease("W", "ann", ttl_seconds=600)
    with claims_of(worker, SHORT_SECONDS).alone("W"):
        assert renewed.wait(PATIENT_SECONDS)
    assert seconds[0] > SHORT_SECONDS


def test_work_is_told_to_stop_when_the_workflow_was_taken() -> None:
    store = MemoryStore()
    worker = make_worker(store)
    with claims_of(worker, SHORT_SECONDS).alone("W") as claim:
        lease = store.lease("W")
        assert lease is not None
        store.release(lease)
        assert claim.is_over.wait(PATIENT_SECONDS)


def test_a_store_that_fails_for_a_while_does_not_end_the_work() -> None:
    store = FailingStore()
    worker = make_worker(store)
    tried = threading.Event()

    def note(answer: Lease) -> Lease:
        tried.set()
        return answer

    store.fail("renew", CheckpointWriteError("for now"), times=2)
    store.alter("renew", note)
    with claims_of(worker, SHORT_SECONDS).alone("W") as claim:
        assert tried.wait(PATIENT_SECONDS)
        assert not claim.is_over.is_set()


def test_a_lease_that_cannot_be_given_up_keeps_nobody_from_the_result(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FailingStore()
    worker = make_worker(store)
    with claims_of(worker).alone("W"):
        store.fail("release")
    assert "was not given up" in caplog.text


def test_a_lease_that_was_lost_is_not_taken_for_that_of_the_new_owner() -> None:
    store = MemoryStore()
    ann, bob = make_worker(store), make_worker(store)
    ann.service.acquire_lease("W", "ann", ttl_seconds=0)
    bob.service.acquire_lease("W", "bob", ttl_seconds=600)
    held = bob.service.lease_of("W")
    with pytest.raises(LeaseLostError), claims_of(ann).alone("W"):
        raise AssertionError("bob has it")
    assert bob.service.lease_of("W") == held


def test_a_lease_of_ours_that_is_over_is_renewed_before_anything_is_done() -> None:
    worker = make_worker()
    worker.service.acquire_lease("W", "ann", ttl_seconds=0)
    with claims_of(worker).alone("W"):
        lease = worker.service.lease_of("W")
        assert lease is not None and lease.is_live and lease.owner == "ann"


def test_no_lease_is_left_behind_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    worker = make_worker()
    claims = claims_of(worker)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError), claims.alone("W"):
            raise AssertionError("nobody would renew the lease")
    assert worker.service.lease_of("W") is None
    with claims.alone("W"):
        pass


def test_what_is_still_worked_on_at_the_end_is_given_up() -> None:
    store = MemoryStore()
    worker = make_worker(store)
    claims = claims_of(worker)
    with claims.alone("W") as claim:
        claims.close()
        assert claim.is_over.is_set() and store.lease("W") is None
        lease = store.acquire("W", "somebody else", 600)
    assert store.lease("W") == lease
