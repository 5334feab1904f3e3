"""The suite sees it when a store breaks a promise about its life or its ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.conformance.store import StoreConformance
from holdfast.domain.errors import StoreClosedError
from holdfast.domain.record import Commit, Head
from tests.conformance.suite import failures


class AnswersWhenClosed(MemoryStore):
    def head(self, workflow_id: str) -> Head:
        try:
            return super().head(workflow_id)
        except StoreClosedError:
            return Head()


class FoldsCase(MemoryStore):
    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        return super().commit([replace(c, workflow_id=c.workflow_id.lower()) for c in commits])

    def head(self, workflow_id: str) -> Head:
        return super().head(workflow_id.lower())


BROKEN = [AnswersWhenClosed, FoldsCase]


@pytest.mark.parametrize("kind", BROKEN, ids=lambda kind: kind.__name__)
def test_a_broken_promise_goes_red(kind: type[MemoryStore]) -> None:
    assert failures(kind, StoreConformance)
