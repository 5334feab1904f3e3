"""The service on files keeps its promises in every random history, crashes included."""

from __future__ import annotations

import tempfile
from datetime import timedelta

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.filesystem.views import Views
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointError
from holdfast.testing import FixedClock, SequentialIds
from tests.application.service_machine import make_machine
from tests.application.services import make_service

JOURNAL_BYTES = 64 * 1024


class FileBench:
    """Services over one folder; small thresholds and a small journal bring every mechanism into play."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._clock = FixedClock(step=timedelta(seconds=1))
        self._ids = SequentialIds()
        self._store: FilesystemStore | None = None

    def open(self) -> CheckpointService:
        small = {"blob_threshold_bytes": 200, "compression_threshold_bytes": 400}
        self._store = FilesystemStore.open(self._folder.name, journal_bytes=JOURNAL_BYTES, background=False)
        return make_service(self._store, clock=self._clock, ids=self._ids, **small)

    def crash(self, service: CheckpointService) -> CheckpointService:
        """Let go of files and locks as the kernel does for a killed process: nothing is settled."""
        assert self._store is not None and self._store._committer is not None
        committer, self._store._closed = self._store._committer, True
        committer.journal.release()
        committer.settler.release()
        return self.open()

    def clean_up(self, service: CheckpointService) -> None:
        service.close()
        self._folder.cleanup()


TestServiceOnFiles = make_machine(FileBench).TestCase
TestServiceOnFiles.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)


def test_a_reader_blind_to_the_journal_goes_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: after a crash the newest record is not read from where it is."""
    records = Views.records

    def stale(self: Views, workflow_id: str, first: int, last: int) -> list[bytes]:
        found = records(self, workflow_id, first, last)
        return [*found[:-1], found[-2]] if len(found) > 1 else found

    monkeypatch.setattr(Views, "records", stale)
    once = settings(max_examples=30, phases=[Phase.generate], report_multiple_bugs=False, deadline=None)
    with pytest.raises((AssertionError, CheckpointError)):
        run_state_machine_as_test(make_machine(FileBench), settings=once)
