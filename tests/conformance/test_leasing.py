"""The suite sees it when a store breaks a promise about leases or their fence."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.conformance.leasing import Leasing
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import LeaseHeldError, LeaseLostError
from holdfast.domain.record import Commit, Head, Lease
from holdfast.ports import Store
from tests.conformance.suite import failures


class FencesNothing(MemoryStore):
    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        refused = super()._refusal(commit, head)
        return None if isinstance(refused, LeaseHeldError | LeaseLostError) else refused


class IgnoresTokens(MemoryStore):
    """Lets everybody write while a lease is live, and nobody who shows none."""

    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        lease = self.lease(commit.workflow_id)
        shown = lease.token if commit.token and lease else commit.token
        return super()._refusal(replace(commit, token=shown), head)


class LooksAtTheHeadFirst(MemoryStore):
    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        return commit.conflict(head) if commit.expected != head else super()._refusal(commit, head)


class LetsStrangersIn(MemoryStore):
    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        refused = super()._refusal(commit, head)
        return None if isinstance(refused, LeaseHeldError) else refused


class FencesTheExpiredOff(MemoryStore):
    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        lease = self.lease(commit.workflow_id)
        if commit.token and lease and not lease.is_live:
            return LeaseLostError("expired")
        return super()._refusal(commit, head)


class KeepsWhatWasFencedOff(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        outcomes = super().commit(commits)
        for commit, outcome in zip(commits, outcomes, strict=True):
            if isinstance(outcome, LeaseLostError):
                self._blobs.update(commit.blobs)
        return outcomes


class SpoilsTheGroup(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        outcomes = super().commit(commits)
        lost = next((outcome for outcome in outcomes if isinstance(outcome, LeaseLostError)), None)
        return [lost or outcome for outcome in outcomes]


class GivesToEverybody(MemoryStore):
    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        self._leases.pop(workflow_id, None)
        return super().acquire(workflow_id, owner, ttl_seconds, audit)


class RefusesItself(MemoryStore):
    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        lease = self.lease(workflow_id)
        if lease and lease.is_live:
            raise LeaseHeldError(f"{lease.owner} until {lease.expires_at}")
        return super().acquire(workflow_id, owner, ttl_seconds, audit)


class StartsTokensAnew(MemoryStore):
    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        super().release(lease, audit)
        if self.lease(lease.workflow_id) is None:
            self._tokens.pop(lease.workflow_id, None)


class ReusesTheTokenOfItsOwner(MemoryStore):
    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        lease = self.lease(workflow_id)
        if lease and lease.owner == owner:
            return self.renew(lease, ttl_seconds)
        return super().acquire(workflow_id, owner, ttl_seconds, audit)


class NeverExpires(MemoryStore):
    def lease(self, workflow_id: str) -> Lease | None:
        lease = super().lease(workflow_id)
        return lease and replace(lease, is_live=True)


class RenewsWhatWasTaken(MemoryStore):
    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        current = self._leases.get(lease.workflow_id)
        return super().renew(current or lease, ttl_seconds)


class RenewsOnlyTheLive(MemoryStore):
    def renew(self, lease: Lease, ttl_seconds: float) -> Lease:
        current = self.lease(lease.workflow_id)
        if current and not current.is_live:
            raise LeaseLostError("expired")
        return super().renew(lease, ttl_seconds)


class ReleasesForOthers(MemoryStore):
    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        self._leases.pop(lease.workflow_id, None)


class NeverReleases(MemoryStore):
    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        """Do nothing."""


class ListsWhatIsOnlyLeased(MemoryStore):
    def workflows(self) -> Iterator[str]:
        return iter({*super().workflows(), *self._leases})


BROKEN = [
    FencesNothing,
    IgnoresTokens,
    LooksAtTheHeadFirst,
    LetsStrangersIn,
    FencesTheExpiredOff,
    KeepsWhatWasFencedOff,
    SpoilsTheGroup,
    GivesToEverybody,
    RefusesItself,
    StartsTokensAnew,
    ReusesTheTokenOfItsOwner,
    NeverExpires,
    RenewsWhatWasTaken,
    RenewsOnlyTheLive,
    ReleasesForOthers,
    NeverReleases,
    ListsWhatIsOnlyLeased,
]


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_promise_goes_red(kind: type[MemoryStore]) -> None:
    assert failures(kind, Leasing)


class WritesWhenOthersHaveTakenOver(MemoryStore):
    """Asks for the lease of its second commit, and writes it only after somebody else took over."""

    def __init__(self) -> None:
        super().__init__()
        self.on_its_way, self.taken_over, self.written = (threading.Event() for _ in range(3))

    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        if self.lease(workflow_id):
            self.on_its_way.wait()
        return super().acquire(workflow_id, owner, ttl_seconds, audit)

    def head(self, workflow_id: str) -> Head:
        head = super().head(workflow_id)
        if self._tokens.get(workflow_id) == 2:
            self.taken_over.set()
        return head

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        if commits[0].token == 2:
            self.written.wait()
        elif commits[0].expected.sequence == 1:
            self.on_its_way.set()
            self.taken_over.wait()
            late = super().commit([replace(commit, token=2) for commit in commits])
            self.written.set()
            return late
        return super().commit(commits)


def test_a_commit_that_lands_after_a_takeover_goes_red() -> None:
    class Suite(Leasing):
        def open_store(self) -> Store:
            return WritesWhenOthersHaveTakenOver()

    with pytest.raises(AssertionError, match="CheckpointConflictError"):
        Suite().test_once_a_workflow_was_taken_over_its_head_stands_still()
