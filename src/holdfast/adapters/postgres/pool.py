"""Connections that wait to be used again: whoever comes gets the oldest.

Its server process has statements and tables at hand. To take them in turns, as pools do, is to have two of
everything as soon as two threads once asked at the same time; and to take the one that came back last is to
change to another one whenever they do.
"""

from __future__ import annotations

import threading
import time
from bisect import insort
from collections.abc import Callable

from psycopg.pq import TransactionStatus

from holdfast.adapters.postgres.connection import Connection

#: How long a connection waits that others are preferred to.
_IDLE_SECONDS_MAX = 600.0


class Pool:
    """Lends connections, so many at a time; makes them when none waits, and in the thread that asks."""

    def __init__(self, connect: Callable[[], Connection], size: int) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        #: How many more may be lent.
        self._free = size
        #: From the oldest to the youngest.
        self._idle: list[Connection] = []
        self._closed = False

    def take(self, seconds: float) -> Connection | None:
        """Lend a connection; answer None if all were in use for so long.

        Raises:
            psycopg.Error: none was there, and none could be made.
        """
        with self._lock:
            if not self._free and not self._freed.wait_for(lambda: self._free, seconds):
                return None
            self._free -= 1
            if self._idle:
                return self._idle.pop(0)
        try:
            return self._connect()
        except BaseException:
            with self._lock:
                self._make_free()
            raise

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next one; one that is not as it was lent is closed."""
        connection.idle_since = now = time.monotonic()
        is_usable = connection.pgconn.transaction_status == TransactionStatus.IDLE
        spare = None
        with self._lock:
            self._make_free()
            if self._closed or connection.is_stretched or not is_usable:
                spare = connection
            else:
                insort(self._idle, connection, key=_made_at)
                if self._idle[-1].idle_since < now - _IDLE_SECONDS_MAX:
                    spare = self._idle.pop()
        if spare is not None:
            spare.close()

    def close(self) -> None:
        """Close what waits now, and what is given back later."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _make_free(self) -> None:
        self._free += 1
        self._freed.notify()


def _made_at(connection: Connection) -> float:
    return connection.made_at
