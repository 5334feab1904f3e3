"""The two ways to SQLite: Python's own `sqlite3`, and `apsw`, which brings an SQLite of its own.

What they have in common is enough for everything but opening a connection and telling errors apart.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from holdfast.adapters.sql.database import Row
from holdfast.domain.value import value

#: The code of an error that SQLite says no more about.
_UNKNOWN = 1


class Cursor(Protocol):
    """What a statement found."""

    def fetchall(self) -> list[Row]:
        """Read every row, which also ends the statement."""


class Connection(Protocol):
    """The part of a connection that both drivers have, under the same names."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction was begun and has not ended."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor:
        """Run one statement; it is prepared once and kept."""

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Cursor:
        """Run one statement for each set of parameters."""

    def interrupt(self) -> None:
        """End what is being done."""

    def close(self) -> None:
        """Let go of the file."""


@value
class Driver:
    """A way to SQLite."""

    name: str
    #: Of the SQLite library, not of the package around it.
    version: tuple[int, ...]
    #: What the package raises when SQLite reports an error.
    error: type[Exception]
    #: Open a connection by its URI.
    connect: Callable[[str], Connection]
    #: Tell the extended result code of an error.
    code: Callable[[Exception], int]
    #: Close a connection without moving its write-ahead log into the database.
    abandon: Callable[[Connection], None]

    @property
    def title(self) -> str:
        """Name it for people."""
        return f"SQLite {'.'.join(map(str, self.version))} through {self.name}"


def best() -> Driver:
    """Choose apsw where it is installed, for its SQLite is newer; else what Python has."""
    try:
        return through_apsw()
    except ImportError:
        return through_sqlite3()


def through_sqlite3() -> Driver:
    """Give the way of Python's own module; its SQLite is the one that Python was linked with."""

    def connect(uri: str) -> Connection:
        # Without an isolation level the module begins no transaction by itself.
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)

    def code(error: Exception) -> int:
        return getattr(error, "sqlite_errorcode", _UNKNOWN)

    def abandon(connection: Connection) -> None:
        # The module of Python 3.11 cannot set this; an interrupted connection does not move the log either.
        connection.interrupt()
        connection.close()

    return Driver("sqlite3", sqlite3.sqlite_version_info, sqlite3.Error, connect, code, abandon)


def through_apsw() -> Driver:
    """Give the way of apsw; raises ImportError where it is not installed."""
    import apsw

    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI

    def connect(uri: str) -> Connection:
        return apsw.Connection(uri, flags=flags)

    def code(error: Exception) -> int:
        return getattr(error, "extendedresult", _UNKNOWN)

    def abandon(connection: Connection) -> None:
        assert isinstance(connection, apsw.Connection)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()

    version = tuple(map(int, apsw.sqlite_lib_version().split(".")))
    return Driver("apsw", version, apsw.Error, connect, code, abandon)
