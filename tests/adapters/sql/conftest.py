"""What tests of the shared statements work on: tables in an SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.store import SqliteStore
from tests.process.conftest import fast_folder as fast_folder


@pytest.fixture
def store(fast_folder: Path) -> Iterator[SqliteStore]:
    store = SqliteStore.open(str(fast_folder / "store.db"))
    yield store
    store.close()


@pytest.fixture
def database(store: SqliteStore) -> SqliteDatabase:
    """The tables of the store."""
    return store._database
