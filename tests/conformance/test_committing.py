"""The suite sees it when a store breaks a promise about commits or reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.conformance.committing import Committing
from holdfast.domain.record import Commit, Entry, Head
from tests.conformance.suite import failures


class BelievesEverybody(MemoryStore):
    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        return None


class ComparesSequencesOnly(MemoryStore):
    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        return super()._refusal(
            replace(commit, expected=replace(head, sequence=commit.expected.sequence)), head
        )


class KeepsBlobsOfRefusedCommits(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        for commit in commits:
            self._blobs.update(commit.blobs)
        return super().commit(commits)


class SpoilsTheWholeGroup(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        outcomes = super().commit(commits)
        first = next((outcome for outcome in outcomes if outcome is not None), None)
        return [first for _ in outcomes]


class ForgetsTransitions(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        return super().commit([replace(commit, transitions=()) for commit in commits])


class LosesEvents(MemoryStore):
    def events(self, workflow_id: str, *, after: int = 0) -> Iterator[bytes]:
        return iter(list(super().events(workflow_id, after=after))[:4])


class ListsOldestFirstAlways(MemoryStore):
    def entries(self, workflow_id: str, *, newest_first: bool = False) -> Iterator[Entry]:
        return super().entries(workflow_id)


class FindsNothing(MemoryStore):
    def find(self, uuid_prefix: str) -> list[tuple[str, Entry]]:
        return []


BROKEN = [
    BelievesEverybody,
    ComparesSequencesOnly,
    KeepsBlobsOfRefusedCommits,
    SpoilsTheWholeGroup,
    ForgetsTransitions,
    LosesEvents,
    ListsOldestFirstAlways,
    FindsNothing,
]


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_promise_goes_red(kind: type[MemoryStore]) -> None:
    assert failures(kind, Committing)
