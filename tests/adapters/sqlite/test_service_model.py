"""The service on an SQLite file keeps its promises in every random history, crashes included."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.adapters.sql.reading import Reading
from holdfast.adapters.sqlite.driver import through_apsw, through_sqlite3
from holdfast.adapters.sqlite.journaling import ROLLBACK, WAL
from holdfast.adapters.sqlite.store import SqliteStore
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointError
from holdfast.testing import FixedClock, SequentialIds
from tests.application.service_machine import make_machine
from tests.application.services import make_service
from tests.process.conftest import MEMORY

SMALL = settings(max_examples=10, stateful_step_count=25, deadline=None)


class SqliteBench:
    """Services over one file; small thresholds bring every mechanism into play."""

    driver = through_sqlite3()
    journal_mode = ROLLBACK

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        self._clock = FixedClock(step=timedelta(seconds=1))
        self._ids = SequentialIds()
        self._dead: list[SqliteStore] = []
        self._store: SqliteStore | None = None

    def open(self) -> CheckpointService:
        small = {"blob_threshold_bytes": 200, "compression_threshold_bytes": 400}
        path = str(Path(self._folder.name) / "store.db")
        self._store = SqliteStore.open(path, driver=self.driver, journal_mode=self.journal_mode)
        return make_service(self._store, clock=self._clock, ids=self._ids, **small)

    def crash(self, service: CheckpointService) -> CheckpointService:
        """Never use it again: what a dead process leaves is what the file holds between two calls."""
        assert self._store is not None
        self._dead.append(self._store)
        return self.open()

    def clean_up(self, service: CheckpointService) -> None:
        service.close()
        for store in self._dead:
            store.close()
        self._folder.cleanup()


class LoggedBench(SqliteBench):
    driver = through_apsw()
    journal_mode = WAL


TestServiceOnRollbackJournal = make_machine(SqliteBench).TestCase
TestServiceOnRollbackJournal.settings = SMALL
TestServiceOnWriteAheadLog = make_machine(LoggedBench).TestCase
TestServiceOnWriteAheadLog.settings = SMALL


@pytest.mark.sweep
def test_a_reader_that_repeats_a_record_goes_red(monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control: instead of the newest record the one before is read."""
    records = Reading.records

    def stale(self: Reading, workflow_id: str, first: int, last: int) -> Iterator[bytes]:
        found = list(records(self, workflow_id, first, last))
        return iter([*found[:-1], found[-2]] if len(found) > 1 else found)

    monkeypatch.setattr(Reading, "records", stale)
    once = settings(max_examples=30, phases=[Phase.generate], report_multiple_bugs=False, deadline=None)
    with pytest.raises((AssertionError, CheckpointError)):
        run_state_machine_as_test(make_machine(SqliteBench), settings=once)
