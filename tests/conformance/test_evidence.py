"""The suite sees it when a store hides evidence, makes it up, or replaces what is whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.conformance.evidence import Evidence
from holdfast.domain.record import Keyframe
from tests.conformance.suite import failures


class Hides(MemoryStore):
    def evidence(self, workflow_id: str, sequence: int) -> Iterator[tuple[str, bytes]]:
        return iter([piece for piece in super().evidence(workflow_id, sequence) if piece[0] != "keyframe"])


class MixesUp(MemoryStore):
    def evidence(self, workflow_id: str, sequence: int) -> Iterator[tuple[str, bytes]]:
        return reversed(list(super().evidence(workflow_id, sequence)))


class MakesUp(MemoryStore):
    def evidence(self, workflow_id: str, sequence: int) -> Iterator[tuple[str, bytes]]:
        return iter(list(super().evidence(workflow_id, sequence)) or [("record", b"")])


class Replaces(MemoryStore):
    def put_keyframe(self, workflow_id: str, keyframe: Keyframe) -> None:
        super().put_keyframe(workflow_id, keyframe)
        self._workflows[workflow_id].keyframes[keyframe.entry.sequence] = keyframe


@pytest.mark.parametrize("kind", [Hides, MixesUp, MakesUp, Replaces])
def test_a_store_that_breaks_a_promise_goes_red(kind: type[MemoryStore]) -> None:
    assert failures(kind, Evidence)


def test_a_store_that_keeps_them_stays_green() -> None:
    assert failures(MemoryStore, Evidence) == []
