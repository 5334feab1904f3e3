"""The suite sees it when a store breaks a promise about trails or its own files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.conformance.trailing import Trailing
from holdfast.domain.audit_entry import AuditEntry, AuditRecord
from holdfast.domain.record import Commit, Head, Lease, Removal
from tests.conformance.suite import failures


class ForgetsEntries(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        return super().commit([replace(commit, audit=commit.audit[:1]) for commit in commits])


class TellsWhatWasRefused(MemoryStore):
    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        refused = super()._refusal(commit, head)
        if refused is not None:
            self._keep_trail(self._chain(commit.audit))
        return refused


class MovesLeaves(MemoryStore):
    def _keep_trail(self, records: Sequence[AuditRecord]) -> None:
        super()._keep_trail(records)
        self._leaves.sort(key=lambda record: record.head.session_id)


class LosesLeaves(MemoryStore):
    def leaves(self, *, after: int = 0) -> Iterator[bytes]:
        return iter(list(super().leaves(after=after))[:3])


class KeepsErasedPayloads(MemoryStore):
    def _keep_files(self, commit: Commit) -> None:
        super()._keep_files(replace(commit, erased=()))


class TakesAnyFile(MemoryStore):
    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        return super()._refusal(replace(commit, expected_files={}), head)


class TellsOfLostLeases(MemoryStore):
    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        super().release(lease)
        self._keep_trail(self._chain(audit))


class SaysNothingOfRemovals(MemoryStore):
    def remove(self, workflow_id: str, removal: Removal) -> int:
        return super().remove(workflow_id, replace(removal, audit=()))


@pytest.mark.parametrize(
    "broken",
    [
        ForgetsEntries,
        TellsWhatWasRefused,
        MovesLeaves,
        LosesLeaves,
        KeepsErasedPayloads,
        TakesAnyFile,
        TellsOfLostLeases,
        SaysNothingOfRemovals,
    ],
)
def test_a_broken_promise_is_seen(broken: type[MemoryStore]) -> None:
    assert failures(broken, Trailing) != []


def test_a_store_that_keeps_its_promises_passes() -> None:
    assert failures(MemoryStore, Trailing) == []
