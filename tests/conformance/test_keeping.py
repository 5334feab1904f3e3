"""The suite sees it when a store breaks a promise about keyframes, blobs or removing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.conformance.keeping import Keeping
from holdfast.domain.record import Commit, Head, Keyframe, Removal
from tests.conformance.suite import failures


class IgnoresNeeds(MemoryStore):
    def _refusal(self, commit: Commit, head: Head) -> Exception | None:
        return super()._refusal(replace(commit, needs=()), head)


class DropsPrunedRecords(MemoryStore):
    def remove(self, workflow_id: str, removal: Removal) -> int:
        freed_bytes = super().remove(workflow_id, removal)
        for sequence in removal.sequences:
            self._workflows[workflow_id].records.pop(sequence, None)
        return freed_bytes


class LeavesNoTombstones(MemoryStore):
    def remove(self, workflow_id: str, removal: Removal) -> int:
        freed_bytes = super().remove(workflow_id, removal)
        for sequence in removal.sequences:
            self._peek(workflow_id).entries.pop(sequence, None)
            self._peek(workflow_id).records.pop(sequence, None)
        return freed_bytes


class CollectsTooMuch(MemoryStore):
    def _collect(self, candidates: Sequence[str]) -> int:
        return sum(len(self._blobs.pop(sha256, b"")) for sha256 in candidates)


class CollectsNothing(MemoryStore):
    def _collect(self, candidates: Sequence[str]) -> int:
        return 0


class KeepsLateKeyframes(MemoryStore):
    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        self._workflows[workflow_id].keyframes.setdefault(keyframe.entry.sequence, keyframe)


class ForgetsKeyframes(MemoryStore):
    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        """Do nothing."""


BROKEN = [
    IgnoresNeeds,
    DropsPrunedRecords,
    LeavesNoTombstones,
    CollectsTooMuch,
    CollectsNothing,
    ForgetsKeyframes,
    KeepsLateKeyframes,
]


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_promise_goes_red(kind: type[MemoryStore]) -> None:
    assert failures(kind, Keeping)
