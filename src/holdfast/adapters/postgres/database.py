"""The tables as the shared statements see them: queries, transactions, and the schema they need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

import psycopg
from psycopg import errors, sql
from psycopg.pq.abc import PGresult

from holdfast.adapters.postgres.connection import Connection
from holdfast.adapters.postgres.connections import ConnectionLost, Connections
from holdfast.adapters.postgres.faults import PASSING, translate
from holdfast.adapters.sql.database import NOTHING, Parameters, Row
from holdfast.adapters.sql.migrations import applied_to
from holdfast.domain.errors import CheckpointWriteError, InvalidIdError

T = TypeVar("T")

#: Times that a transaction is repeated which got into another one's way.
ATTEMPTS_MAX = 20

#: A parameter of a shared statement.
PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
#: One number for all stores of a database: migrations are rare, waiting for each other costs nothing.
_MIGRATION_LOCK = 0x486F6C64666173


@lru_cache(maxsize=256)
def in_dialect(statement: str) -> tuple[str, tuple[str, ...]]:
    """Write a shared statement as the server wants it, and name its parameters in their order."""
    numbers: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        return f"${numbers.setdefault(found[1], len(numbers) + 1)}"

    return PARAMETER.sub(numbered, statement), tuple(numbers)


class Statements:
    """Runs statements on one connection, with shared parameters and our errors."""

    def __init__(self, connection: Connection, place: str) -> None:
        self._connection = connection
        self._place = place

    def rows(self, sql: str, parameters: Parameters = NOTHING) -> list[Row]:
        return self._connection.read(self._ask(sql, parameters))

    def run(self, sql: str, parameters: Parameters = NOTHING) -> int:
        return self._ask(sql, parameters).command_tuples or 0

    def _ask(self, sql: str, parameters: Parameters) -> PGresult:
        query, names = in_dialect(sql)
        return self._connection.ask(query, [parameters[name] for name in names])

    def script(self, sql: str) -> None:
        # Without parameters: only so may it hold several statements.
        try:
            self._connection.execute(sql.encode())
        except psycopg.Error as fault:
            raise translate(fault, self._place, is_writing=True) from fault


class PostgresDatabase:
    """Answers the shared statements out of the tables of one schema."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections
        self.place = connections.address.url

    def rows(self, sql: str, parameters: Parameters = NOTHING) -> list[Row]:
        """Answer a query in a snapshot of its own; a lost server is waited for."""
        with self.translated(is_writing=False):
            found: list[Row] = self.connections.persist(
                lambda connection: Statements(connection, self.place).rows(sql, parameters)
            )
            return found

    def scans(self) -> Scans:
        """Give another way to ask, for questions about whole tables."""
        return Scans(self)

    @contextmanager
    def transaction(self) -> Iterator[Statements]:
        """Begin a transaction; see `atomically` for one that survives what passes."""
        with self.translated(is_writing=True):
            try:
                with self.connections.connection() as connection, connection.transaction():
                    yield Statements(connection, self.place)
            except ConnectionLost as lost:
                raise CheckpointWriteError(
                    f"the connection was lost: {lost}", place=self.place, hint="Try again."
                ) from lost

    def atomically(self, work: Callable[[Statements], T]) -> T:
        """Do work in one transaction, as often as it takes: it must be able to bear being done twice."""

        def attempt(connection: Connection) -> T:
            with connection.transaction():
                return work(Statements(connection, self.place))

        with self.translated(is_writing=True):
            for _ in range(ATTEMPTS_MAX - 1):
                try:
                    return self._persisted(attempt)
                except (*PASSING, errors.ForeignKeyViolation):
                    # Of a blob that somebody began, or ceased, to use at this moment.
                    continue
            return self._persisted(attempt)

    def _persisted(self, attempt: Callable[[Connection], T]) -> T:
        result: T = self.connections.persist(attempt)
        return result

    # -- the schema --------------------------------------------------------------------------

    def applied(self) -> list[Row]:
        """Tell which migrations were made; none where there is no schema yet."""
        if not self.rows("select to_regclass('schema_migrations')")[0][0]:
            return []
        return applied_to(self)

    @contextmanager
    def migrating(self) -> Iterator[Statements]:
        """Begin a transaction that only one in the world has at a time, in a schema that is there."""
        with self.transaction() as transaction:
            # Others may wait for a long migration: the patience of commits is not for this.
            transaction.run("set local lock_timeout = 0")
            transaction.run("select pg_advisory_xact_lock(:lock)", {"lock": _MIGRATION_LOCK})
            self._create_schema(transaction)
            yield transaction

    def _create_schema(self, transaction: Statements) -> None:
        name = self.connections.address.schema
        # Asked first: who may not create schemas may still use one that is there.
        if not transaction.rows("select 1 from pg_namespace where nspname = :name", {"name": name}):
            transaction.script(sql.SQL("create schema {}").format(sql.Identifier(name)).as_string(None))

    @contextmanager
    def translated(self, *, is_writing: bool) -> Iterator[None]:
        """Let only errors of ours out."""
        try:
            yield
        except psycopg.Error as fault:
            raise translate(fault, self.place, is_writing=is_writing) from fault
        except UnicodeEncodeError as fault:
            raise InvalidIdError(
                "a name holds what UTF-8 cannot write", place=repr(fault.object[fault.start : fault.end])
            ) from fault


class Scans:
    """Asks with plans that may read a table from end to end, which the plans of commits must not."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def rows(self, sql: str, parameters: Parameters = NOTHING) -> list[Row]:
        def ask(statements: Statements) -> list[Row]:
            statements.run("set local enable_seqscan = on")
            return statements.rows(sql, parameters)

        return self._database.atomically(ask)
