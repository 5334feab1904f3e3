"""The service on the store in memory keeps its promises in every random history."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.service import CheckpointService
from holdfast.testing import FixedClock, SequentialIds
from tests.application.service_machine import make_machine
from tests.application.services import make_service


class UnclosableStore(MemoryStore):
    """Outlives its closing, as a store on disk does."""

    def close(self) -> None:
        """Keep everything for the next opening."""


class MemoryBench:
    """Services over one store in memory; small thresholds bring every mechanism into play."""

    def __init__(self) -> None:
        self._store = UnclosableStore()
        self._clock = FixedClock(step=timedelta(seconds=1))
        self._ids = SequentialIds()

    def open(self) -> CheckpointService:
        small = {"blob_threshold_bytes": 200, "compression_threshold_bytes": 400}
        return make_service(self._store, clock=self._clock, ids=self._ids, **small)

    def crash(self, service: CheckpointService) -> CheckpointService:
        return self.open()

    def clean_up(self, service: CheckpointService) -> None:
        service.close()


TestServiceOnMemory = pytest.mark.sweep(make_machine(MemoryBench).TestCase)
