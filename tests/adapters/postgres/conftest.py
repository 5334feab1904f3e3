"""A store of its own for each test, on the one server of the process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.adapters.postgres.store import PostgresStore
from tests.adapters.postgres import server


@pytest.fixture
def url() -> str:
    """Where a store may be; nobody there loses patience because a machine is busy."""
    return server.url(lock_seconds="30", reconnect_seconds="60")


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore.open(url)
    yield store
    store.close()
