"""Leases through both faces: what is acquired here is shown by every commit, and what is lost stops all."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.memory import MemoryStore
from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.service import CheckpointService
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointWriteError,
    ConfigError,
    InvalidIdError,
    LeaseHeldError,
    LeaseLostError,
)
from holdfast.domain.record import Commit, Lease
from holdfast.testing import FailingStore
from tests.application.services import make_kit, make_service


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def ann(store: MemoryStore) -> Iterator[CheckpointService]:
    """The service of one worker."""
    yield make_service(store)


@pytest.fixture
def bob(store: MemoryStore) -> Iterator[CheckpointService]:
    """The service of another worker over the same store."""
    yield make_service(store)


def test_who_acquired_a_workflow_may_write_it_and_nobody_else(
    ann: CheckpointService, bob: CheckpointService
) -> None:
    lease = ann.acquire_lease("W", "ann", ttl_seconds=60)
    assert ann.lease_of("W") == bob.lease_of("W") == lease
    ann.create_checkpoint("W", {"by": "ann"})
    ann.append_event("W", "STEP")
    for write in (
        lambda: bob.create_checkpoint("W", {"by": "bob"}),
        lambda: bob.append_event("W", "STEP"),
        lambda: bob.acquire_lease("W", "bob"),
    ):
        with pytest.raises(LeaseHeldError, match="'ann' has the workflow"):
            write()
    bob.create_checkpoint("V", {"by": "bob"})
    assert [event.type for event in bob.events("W")] == ["CHECKPOINT_CREATED", "STEP"]


def test_a_lease_lives_thirty_seconds_unless_told_otherwise(ann: CheckpointService) -> None:
    lease = ann.acquire_lease("W", "ann")
    assert lease.is_live
    assert ann.renew_lease(lease, ttl_seconds=3600).expires_at > lease.expires_at
    assert not ann.renew_lease(lease, ttl_seconds=0).is_live
    assert ann.renew_lease(lease).is_live


def test_everything_after_a_takeover_is_refused_until_it_is_acquired_again(
    ann: CheckpointService, bob: CheckpointService
) -> None:
    lost = ann.acquire_lease("W", "ann", ttl_seconds=0)
    ann.create_checkpoint("W", {"by": "ann"})
    taken = bob.acquire_lease("W", "bob")
    bob.create_checkpoint("W", {"by": "bob"})
    for _ in range(2):
        for write in (
            lambda: ann.create_checkpoint("W", {"by": "ann", "late": True}),
            lambda: ann.append_event("W", "LATE"),
            lambda: ann.record_decision("W", "late"),
            lambda: ann.delete("W@1"),
            lambda: ann.renew_lease(lost),
        ):
            with pytest.raises(LeaseLostError, match=f"lease {lost.token} was followed by lease"):
                write()
    with pytest.raises(LeaseHeldError):
        ann.acquire_lease("W", "ann")
    ann.release_lease(lost)
    assert bob.lease_of("W") == taken
    bob.release_lease(taken)
    again = ann.acquire_lease("W", "ann")
    ann.create_checkpoint("W", {"by": "ann again"})
    assert again.token > taken.token > lost.token
    states = [ann.restore_checkpoint(f"W@{n}").context["by"] for n in (1, 2, 3)]
    assert states == ["ann", "bob", "ann again"]
    assert all(ann.validate_checkpoint(f"W@{n}").valid for n in (1, 2, 3))


def test_a_lease_that_expired_unnoticed_still_counts_while_nobody_took_it(
    ann: CheckpointService, bob: CheckpointService
) -> None:
    lease = ann.acquire_lease("W", "ann", ttl_seconds=0)
    ann.create_checkpoint("W", {"n": 1})
    assert bob.lease_of("W") == lease and not lease.is_live
    ann.append_event("W", "STEP")


def test_who_releases_writes_like_anybody_else_from_then_on(
    ann: CheckpointService, bob: CheckpointService
) -> None:
    lease = ann.acquire_lease("W", "ann")
    ann.create_checkpoint("W", {"n": 1})
    ann.release_lease(lease)
    ann.release_lease(lease)
    assert ann.lease_of("W") is None
    bob.create_checkpoint("W", {"n": 2})
    bob.acquire_lease("W", "bob")
    with pytest.raises(LeaseHeldError):
        ann.create_checkpoint("W", {"n": 3})


def test_a_service_that_acquires_again_shows_the_new_token(ann: CheckpointService) -> None:
    first = ann.acquire_lease("W", "ann")
    second = ann.acquire_lease("W", "ann")
    ann.create_checkpoint("W", {"n": 1})
    ann.release_lease(first)
    ann.create_checkpoint("W", {"n": 2})
    assert ann.lease_of("W") == second


def test_another_service_of_the_same_owner_fences_the_first_off(
    ann: CheckpointService, bob: CheckpointService
) -> None:
    ann.acquire_lease("W", "ann")
    bob.acquire_lease("W", "ann")
    bob.create_checkpoint("W", {"n": 1})
    with pytest.raises(LeaseLostError):
        ann.create_checkpoint("W", {"n": 2})


def test_acquiring_forgets_what_was_remembered_before_others_wrote(
    ann: CheckpointService, bob: CheckpointService
) -> None:
    ann.create_checkpoint("W", {"n": 1, "kept": "x" * 100})
    bob.create_checkpoint("W", {"n": 2})
    ann.acquire_lease("W", "ann")
    ann.create_checkpoint("W", {"n": 3})
    assert ann.restore_checkpoint("W@3").context == {"n": 3}


def test_ids_and_times_that_are_none_are_refused(ann: CheckpointService) -> None:
    for workflow_id, owner in (("", "ann"), ("W", ""), ("W", "a\nb"), ("W", " ann")):
        with pytest.raises(InvalidIdError):
            ann.acquire_lease(workflow_id, owner)
    with pytest.raises(InvalidIdError):
        ann.lease_of("")
    with pytest.raises(ConfigError):
        ann.acquire_lease("W", "ann", ttl_seconds=-1)
    assert ann.lease_of("W") is None


def test_what_nobody_waits_for_is_decided_before_a_workflow_is_acquired_or_released() -> None:
    done: list[str] = []
    gate = threading.Event()

    class Slow(FailingStore):
        def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
            gate.wait()
            done.extend(f"commit under {commit.token}" for commit in commits if commit.workflow_id)
            return super().commit(commits)

        def acquire(
            self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
        ) -> Lease:
            done.append("acquire")
            return super().acquire(workflow_id, owner, ttl_seconds, audit)

        def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
            done.append("release")
            super().release(lease, audit)

    with make_service(Slow()) as service:
        for change in (
            lambda: service.acquire_lease("W", "ann"),
            lambda: service.release_lease(Lease("W", "ann", 1, "")),
        ):
            gate.clear()
            service.create_checkpoint("W", {"n": len(done)}, wait=False)
            changing = threading.Thread(target=change)
            changing.start()
            gate.set()
            changing.join()
        service.create_checkpoint("W", {"n": len(done)})
    assert done == ["commit under 0", "acquire", "commit under 1", "release", "commit under 0"]


def test_commits_queued_on_top_of_one_that_was_fenced_off_are_told_the_same(store: MemoryStore) -> None:
    service, other = make_service(store), make_service(store)
    service.acquire_lease("W", "ann", ttl_seconds=0)
    service.create_checkpoint("W", {"n": 1})
    other.acquire_lease("W", "bob")
    futures = [service.create_checkpoint("W", {"n": n}, wait=False) for n in range(2, 6)]
    for future in futures:
        with pytest.raises(LeaseLostError, match="was followed by lease 2 of 'bob'"):
            future.result()
    with pytest.raises(LeaseLostError):
        service.flush()


def test_a_release_that_failed_keeps_the_token() -> None:
    store = FailingStore()
    service = make_service(store)
    lease = service.acquire_lease("W", "ann")
    store.fail("release")
    with pytest.raises(CheckpointWriteError):
        service.release_lease(lease)
    service.create_checkpoint("W", {"n": 1})
    assert service.lease_of("W") == lease


def test_a_forked_child_does_not_write_under_its_parents_lease(tmp_path: Path) -> None:
    service = make_service(FilesystemStore.open(str(tmp_path / "store"), background=False))
    service.acquire_lease("W", "ann")
    service.create_checkpoint("W", {"n": 1})
    child = os.fork()
    if child == 0:
        try:
            service.create_checkpoint("W", {"n": 2})
        except LeaseHeldError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    service.create_checkpoint("W", {"n": 3})
    service.close()


def test_a_forked_child_neither_renews_nor_releases_its_parents_lease(tmp_path: Path) -> None:
    service = make_service(FilesystemStore.open(str(tmp_path / "store"), background=False))
    lease = service.acquire_lease("W", "ann")
    child = os.fork()
    if child == 0:
        code = 1
        with suppress(LeaseLostError):
            service.release_lease(lease)
            own = service.acquire_lease("V", "child")
            service.release_lease(service.renew_lease(own))
            code = 6 if service.lease_of("V") is None else 2
            service.renew_lease(lease)
            code = 3
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 6
    service.renew_lease(lease)
    service.create_checkpoint("W", {"n": 2})
    service.release_lease(lease)
    assert service.lease_of("W") is None
    service.close()


def test_the_face_for_coroutines_does_the_same(store: MemoryStore) -> None:
    async def main() -> None:
        ann, bob = AsyncCheckpointService(make_kit(store)), AsyncCheckpointService(make_kit(store))
        lost = await ann.acquire_lease("W", "ann", ttl_seconds=0)
        await ann.create_checkpoint("W", {"by": "ann"})
        taken = await bob.acquire_lease("W", "bob")
        assert await ann.lease_of("W") == taken
        await bob.append_event("W", "STEP")
        with pytest.raises(LeaseLostError):
            await ann.create_checkpoint("W", {"by": "ann", "late": True})
        with pytest.raises(LeaseLostError):
            await ann.append_event("W", "LATE")
        with pytest.raises(LeaseLostError):
            await ann.renew_lease(lost)
        assert (await bob.renew_lease(taken, ttl_seconds=3600)).token == taken.token
        await bob.release_lease(taken)
        await ann.acquire_lease("W", "ann")
        await ann.create_checkpoint("W", {"by": "ann again"})
        with pytest.raises(InvalidIdError):
            await ann.lease_of("")
        for service in (ann, bob):
            await service.close()

    asyncio.run(main())


def test_a_state_that_repeats_the_last_one_is_answered_by_the_store_and_not_from_memory(
    ann: CheckpointService, bob: CheckpointService
) -> None:
    ann.create_checkpoint("W", {"x": 1})
    assert str(ann.create_checkpoint("W", {"x": 1})) == "W@1"
    bob.create_checkpoint("W", {"x": 2})
    with pytest.raises(CheckpointConflictError):
        ann.create_checkpoint("W", {"x": 1})
    assert str(ann.create_checkpoint("W", {"x": 1})) == "W@3"
    ann.acquire_lease("W", "ann", ttl_seconds=0)
    ann.create_checkpoint("W", {"x": 4})
    bob.acquire_lease("W", "bob")
    with pytest.raises(LeaseLostError):
        ann.create_checkpoint("W", {"x": 4})
