"""A connection that tells what it is asked."""

from __future__ import annotations

from typing import Any

from holdfast.adapters.sqlite.driver import Connection
from holdfast.adapters.sqlite.store import SqliteStore


class Listening:
    """A connection that notes what it is asked."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.asked: list[str] = []

    def execute(self, sql: str, *parameters: Any) -> Any:
        self.asked.append(" ".join(sql.split()))
        return self._connection.execute(sql, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def listen(store: SqliteStore) -> list[str]:
    """Listen to the connection that writes from now on."""
    assert store._database._writer is not None
    listening = Listening(store._database._writer)
    store._database._writer = listening
    return listening.asked
