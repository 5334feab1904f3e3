"""Connections: a pool per process and per life of the server, and patience while the server is away."""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from holdfast.adapters.postgres import session
from holdfast.adapters.postgres.address import Address
from holdfast.adapters.postgres.connection import Connection
from holdfast.adapters.postgres.embedded import EmbeddedServer
from holdfast.adapters.postgres.faults import is_getting_ready, translate_refusal
from holdfast.adapters.postgres.pool import Pool
from holdfast.domain.errors import CheckpointError, CheckpointReadError, StoreClosedError

_FIRST_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 0.5


class ConnectionLost(Exception):
    """The connection died under a statement: whether that took effect is unknown."""


class Deadline:
    """How long a lost server is waited for, with pauses that grow."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._pause_seconds = _FIRST_PAUSE_SECONDS

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self._end

    @property
    def left_seconds(self) -> float:
        return max(0.0, self._end - time.monotonic())

    def pause(self) -> None:
        """Wait a moment, longer each time, and not in step with others who wait for the same."""
        time.sleep(min(self._pause_seconds * random.uniform(0.5, 1.0), self.left_seconds))
        self._pause_seconds = min(2 * self._pause_seconds, _LONGEST_PAUSE_SECONDS)


class Connections:
    """All connections of one opening of a store, in this process."""

    def __init__(self, address: Address, *, read_only: bool, create: bool) -> None:
        self.address = address
        self._read_only = read_only
        self._server = EmbeddedServer(address.path) if address.path else None
        if self._server is not None:
            self._server.enter(create=create and not read_only)
        self._begin()
        _OPEN.add(self)
        try:
            self._probe(self.deadline())
        except BaseException:
            self.close()
            raise

    def _begin(self) -> None:
        """Everything a process needs of its own: at opening, and again after a fork."""
        self._changing = threading.Lock()
        self._pool: Pool | None = None
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection that commits each statement by itself.

        Raises:
            ConnectionLost: it died while it was used.
            CheckpointReadError: none could be had.
        """
        pool, connection = self._take()
        try:
            yield connection
        except psycopg.Error as fault:
            if connection.closed:
                self._discard(pool)
                raise ConnectionLost(str(fault)) from fault
            raise
        finally:
            pool.give_back(connection)

    def persist(self, work: Callable[[Connection], Any]) -> Any:
        """Do what may be done twice, again and again while the server is away.

        Raises:
            CheckpointReadError: it did not come back in time.
        """
        deadline: Deadline | None = None
        while True:
            try:
                with self.connection() as connection:
                    return work(connection)
            except ConnectionLost:
                deadline = deadline or self.deadline()
                self.await_server(deadline)
                deadline.pause()

    def deadline(self) -> Deadline:
        """Begin to wait for the server."""
        return Deadline(self.address.reconnect_seconds)

    def await_server(self, deadline: Deadline) -> None:
        """Return once the server takes connections again.

        Raises:
            CheckpointReadError: it did not in time, or refuses us for good.
        """
        while True:
            try:
                self._probe()
                if deadline.is_over:
                    # It answers, and yet every connection dies.
                    raise self._exhausted()
                return
            except CheckpointError as problem:
                # Who is refused for good is told at once; who finds nobody may yet find somebody.
                if type(problem) is not CheckpointReadError or deadline.is_over:
                    raise
            deadline.pause()

    def close(self) -> None:
        """Let go of every connection. Idempotent."""
        with self._changing:
            was_closed, self._closed = self._closed, True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()
        if self._server is not None and not was_closed:
            self._server.leave()

    def after_fork(self) -> None:
        """Begin anew in a child; what the parent has open stays as it is, the child keeps off it."""
        was_closed, pool = self._closed, self._pool
        if pool is not None:
            _ABANDONED.append(pool)
        self._begin()
        self._closed = was_closed
        if self._server is not None:
            self._server.forget()

    # -- the pool ----------------------------------------------------------------------------

    def _take(self) -> tuple[Pool, Connection]:
        deadline: Deadline | None = None
        while True:
            pool = self._pool or self._new_pool()
            try:
                connection = pool.take(deadline.left_seconds if deadline else self.address.reconnect_seconds)
            except psycopg.Error as fault:
                deadline = deadline or self.deadline()
                problem = translate_refusal(fault, self.address.url)
                if type(problem) is not CheckpointReadError or deadline.is_over:
                    # Not chained: what libpq says may repeat what it was told.
                    raise problem from None
                deadline.pause()
                continue
            if connection is None:
                raise self._exhausted()
            return pool, connection

    def _new_pool(self) -> Pool:
        with self._changing:
            if self._pool is None:
                self._pool = Pool(partial(self._connect, self._conninfo()), self.address.pool_size)
            return self._pool

    def _connect(self, conninfo: str) -> Connection:
        # Statements are prepared by the connection itself: the driver would have the server forget them.
        connection = Connection.connect(conninfo, autocommit=True, prepare_threshold=None)
        try:
            session.configure(connection, self.address, read_only=self._read_only)
        except BaseException:
            connection.close()
            raise
        return connection

    def _discard(self, pool: Pool) -> None:
        """Throw a pool away: when one of its connections has died the others most likely have too."""
        with self._changing:
            if self._pool is not pool:
                return
            self._pool = None
        pool.close()

    def _conninfo(self) -> str:
        """Tell how to connect; `_changing` is held, so that no server is started for a store just closed."""
        if self._closed:
            raise StoreClosedError("the store was closed", place=self.address.url, hint="Open it again.")
        if self._server is None:
            return make_conninfo(**self.address.parameters)
        return make_conninfo(**self._server.parameters())

    def _probe(self, deadline: Deadline | None = None) -> None:
        """Connect once, outside the pool, which would not tell why it fails.

        Args:
            deadline: How long a server is waited for that answers and is not ready yet.
        """
        while True:
            with self._changing:
                conninfo = self._conninfo()
            try:
                connection = psycopg.connect(conninfo)
                break
            except psycopg.Error as fault:
                problem = translate_refusal(fault, self.address.url)
                if deadline is None or deadline.is_over or not self._may_come(fault, problem):
                    # Not chained: what libpq says may repeat what it was told.
                    raise problem from None
            deadline.pause()
        with connection:
            session.require_usable(connection, self.address.url)

    def _may_come(self, fault: psycopg.Error, problem: CheckpointError) -> bool:
        """Tell whether a server is worth waiting for: one that says so, or ours, which is started again."""
        is_ours = self._server is not None and type(problem) is CheckpointReadError
        return is_ours or is_getting_ready(fault)

    def _exhausted(self) -> CheckpointReadError:
        return CheckpointReadError(
            f"no connection could be had within {self.address.reconnect_seconds:g} seconds",
            place=self.address.url,
            hint=f"The server is away, or all {self.address.pool_size} connections are busy: "
            "give the URL a larger pool_size.",
        )


_OPEN: weakref.WeakSet[Connections] = weakref.WeakSet()
#: Pools of a parent process. Kept, because letting them go would say goodbye on the parent's connections.
_ABANDONED: list[Pool] = []


def _after_fork() -> None:
    for connections in list(_OPEN):
        connections.after_fork()


os.register_at_fork(after_in_child=_after_fork)
