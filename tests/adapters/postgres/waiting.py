"""Looking at who waits for whom, so that tests need not sleep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.adapters.postgres import server

Connection = psycopg.Connection[tuple[Any, ...]]

_WAITS = "select count(*) from pg_stat_activity where %s = any(pg_blocking_pids(pid))"


@contextmanager
def transaction(url: str) -> Iterator[Connection]:
    """Another client, in the middle of a transaction that it rolls back at the end."""
    with server.connected(url) as connection, connection.transaction(force_rollback=True):
        yield connection


def wait_until_blocked(by: Connection, count: int = 1) -> None:
    """Return once others wait for what a transaction holds."""
    with psycopg.connect(**server.parameters(), autocommit=True) as administrator:
        while administrator.execute(_WAITS, [by.info.backend_pid]).fetchall()[0][0] < count:
            pass


@contextmanager
def beside(call: Callable[[], Any]) -> Iterator[Future[Any]]:
    """Make a call in another thread; its result is waited for at the end."""
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(call)
        yield future
        future.result()
