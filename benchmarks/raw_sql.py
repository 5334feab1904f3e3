"""What the databases themselves cost: one durable insert into one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from holdfast.adapters.postgres.embedded import EmbeddedServer
from holdfast.adapters.sqlite.driver import best
from holdfast.adapters.sqlite.journaling import choose


class RawSqlite:
    """Insert bytes with the driver, journal mode and durability that the store uses."""

    def __init__(self, path: Path) -> None:
        driver = best()
        path.touch()
        self._connection = driver.connect(path.as_uri())
        for statement in (
            f"pragma journal_mode = {choose(driver.version).pragma}",
            "pragma synchronous = full",
            "create table raw (id integer primary key, data blob)",
        ):
            self._connection.execute(statement).fetchall()

    def __call__(self, data: bytes) -> None:
        self._connection.execute("begin immediate").fetchall()
        self._connection.execute("insert into raw (data) values (?)", (data,)).fetchall()
        self._connection.execute("commit").fetchall()

    def close(self) -> None:
        self._connection.close()


class RawPostgres:
    """Insert bytes in a transaction of their own, prepared, over the same kind of connection."""

    def __init__(self, folder: Path) -> None:
        self._server = EmbeddedServer(str(folder))
        address = make_conninfo(**self._server.parameters())
        self.connection: psycopg.Connection[Any] = psycopg.connect(address, autocommit=True)
        self.connection.execute("create table raw (id bigserial primary key, data bytea)")

    def __call__(self, data: bytes) -> None:
        self.connection.execute("insert into raw (data) values (%s)", (data,), prepare=True, binary=True)

    def close(self) -> None:
        self.connection.close()
        self._server.leave()


def table_bytes(raw: RawPostgres) -> int:
    """Tables and indexes of the store."""
    query = """
        select coalesce(sum(pg_total_relation_size(oid)), 0) from pg_class
        where relkind = 'r' and relnamespace = 'holdfast'::regnamespace
    """
    [(size,)] = raw.connection.execute(query).fetchall()
    return int(size)
