"""A transaction, as the shared statements see it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from holdfast.adapters.sql.database import NOTHING, Parameters, Row
from holdfast.adapters.sqlite.driver import Connection


class SqliteTransaction:
    """What is done between BEGIN and COMMIT."""

    __slots__ = ("connection", "version")

    def __init__(self, connection: Connection, version: int) -> None:
        self.connection = connection
        #: Another one than before if others have changed the database since.
        self.version = version

    def rows(self, sql: str, parameters: Parameters = NOTHING) -> list[Row]:
        return self.connection.execute(sql, parameters or ()).fetchall()

    def run(self, sql: str, parameters: Parameters = NOTHING) -> int:
        self.connection.execute(sql, parameters or ()).fetchall()
        [(count,)] = self.connection.execute("select changes()").fetchall()
        return int(count)

    def script(self, sql: str) -> None:
        for statement in split(sql):
            self.connection.execute(statement).fetchall()


def split(script: str) -> Iterator[str]:
    """Take a script apart into its statements."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement
