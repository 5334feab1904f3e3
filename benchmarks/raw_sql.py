"""What the databases themselves cost: one durable insert into one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class RawSqlite:
    """Insert bytes with the driver, journal mode and durability that the store uses."""

    def __init__(self, path: Path, journal_mode: str) -> None:
        from holdfast.adapters.sqlite.driver import connect

        self._connection = connect(str(path))
        self._connection.execute(f"pragma journal_mode={journal_mode}")
        self._connection.execute("pragma synchronous=full")
        self._connection.execute("create table raw (id integer primary key, data blob)")

    def __call__(self, data: bytes) -> None:
        self._connection.execute("begin immediate")
        self._connection.execute("insert into raw (data) values (?)", (data,))
        self._connection.execute("commit")

    def close(self) -> None:
        self._connection.close()


class RawPostgres:
    """Insert bytes in a transaction of their own, prepared, over the same kind of connection."""

    def __init__(self, folder: Path) -> None:
        import psycopg

        from holdfast.adapters.postgres.embedded import running

        self.connection: psycopg.Connection[Any] = psycopg.connect(running(str(folder)), autocommit=True)
        self.connection.execute("create table raw (id bigserial primary key, data bytea)")

    def __call__(self, data: bytes) -> None:
        self.connection.execute(
            "insert into raw (data) values (%s)", (data,), prepare=True, binary=True
        )

    def close(self) -> None:
        self.connection.close()


def table_bytes(raw: RawPostgres) -> int:
    """Tables and indexes of the store."""
    query = "select coalesce(sum(pg_total_relation_size(oid)), 0) from pg_class where relkind = 'r' and relname in "
    tables = "('checkpoints', 'events', 'keyframes', 'blobs', 'blob_uses', 'leases')"
    [(size,)] = raw.connection.execute(query + tables).fetchall()
    return int(size)
