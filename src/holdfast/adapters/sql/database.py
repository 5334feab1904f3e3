"""What the shared statements need of a database. Parameters are written `:name` in every dialect.

Whoever implements this translates the driver's errors, and raises StoreClosedError once it was closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import MappingProxyType
from typing import Any, Protocol

Row = tuple[Any, ...]
Parameters = Mapping[str, Any]

NOTHING: Parameters = MappingProxyType({})


class Reads(Protocol):
    """Answers questions."""

    def rows(self, sql: str, parameters: Parameters = NOTHING) -> list[Row]:
        """All rows that a query finds."""


class Transaction(Reads, Protocol):
    """Changes that become visible and durable together; a query sees those made before it."""

    def run(self, sql: str, parameters: Parameters = NOTHING) -> int:
        """Run a statement; answer how many rows it changed."""


class Script(Transaction, Protocol):
    """A transaction that may also change the schema."""

    def script(self, sql: str) -> None:
        """Run the statements of a migration."""


class Database(Reads, Protocol):
    """A database. Each query outside a transaction sees everything committed before it."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Begin a transaction that commits at the end of the block, or rolls back if that raises."""
