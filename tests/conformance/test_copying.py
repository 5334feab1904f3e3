"""The suite sees it when a store breaks a promise about histories that arrive from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.conformance.copying import Arriving
from holdfast.domain.errors import CheckpointWriteError
from holdfast.domain.record import Commit, Record
from tests.conformance.suite import failures


class Changing(MemoryStore):
    """Takes something else than it is given."""

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        return super().commit([self.changed(commit) for commit in commits])

    def changed(self, commit: Commit) -> Commit:
        raise NotImplementedError


class RevivesTombstones(Changing):
    def changed(self, commit: Commit) -> Commit:
        record = commit.record
        return replace(commit, record=record and replace(record, entry=replace(record.entry, pruned=False)))


class KeepsNoBytesOfTombstones(Changing):
    def changed(self, commit: Commit) -> Commit:
        record = commit.record
        return replace(
            commit, record=record and Record(record.entry, b"" if record.entry.pruned else record.data)
        )


class ForgetsStatus(Changing):
    def changed(self, commit: Commit) -> Commit:
        record = commit.record
        entry = record and replace(record.entry, status="active", retry_count=0, pinned=False)
        return replace(commit, record=record and entry and Record(entry, record.data))


class DropsKeyframesWithoutRecord(Changing):
    def changed(self, commit: Commit) -> Commit:
        is_bare = commit.record is not None and not commit.record.data
        return replace(commit, keyframe=None if is_bare else commit.keyframe)


class WantsEvents(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        if any(commit.record and not commit.events for commit in commits):
            raise CheckpointWriteError("where are the events?")
        return super().commit(commits)


class WantsTheBeginning(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        for commit in commits:
            if commit.record and commit.record.entry.sequence != commit.expected.sequence + 1:
                raise CheckpointWriteError("where is the beginning?")
        return super().commit(commits)


class TakesNoMoreThan(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        return super().commit(commits[:100]) + [None] * len(commits[100:])


class CollectsBlobsOfTombstones(MemoryStore):
    def _collect(self, candidates: Sequence[str]) -> int:
        return sum(len(self._blobs.pop(sha256, b"")) for sha256 in candidates)


BROKEN = [
    RevivesTombstones,
    KeepsNoBytesOfTombstones,
    ForgetsStatus,
    DropsKeyframesWithoutRecord,
    WantsEvents,
    WantsTheBeginning,
    TakesNoMoreThan,
    CollectsBlobsOfTombstones,
]


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_promise_goes_red(kind: type[MemoryStore]) -> None:
    assert failures(kind, Arriving)
