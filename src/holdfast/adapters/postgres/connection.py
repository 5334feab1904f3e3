"""A connection, and the statements it has prepared: what is asked goes past the cursors of the driver.

For a short statement those take as long as the server does. Values travel as the bytes that the server keeps
them as; waiting, cancelling and reading rows are the driver's.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import psycopg
from psycopg import abc, errors, generators
from psycopg.adapt import Transformer
from psycopg.pq import ExecStatus, Format
from psycopg.pq.abc import PGresult

from holdfast.adapters.postgres import arrays
from holdfast.adapters.sql.database import Row

#: Statements that a connection remembers at most; each takes memory of the server.
PREPARED_MAX = 200

_BINARY = Format.BINARY
_GOOD = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK)
_NUMBER = struct.Struct("!q")

#: What the driver makes room for and never gives back while a connection lives is this much at most.
LARGE_BYTES = 4 * 1024 * 1024

#: The number of a type for the server, and how a value of it is written.
_Writing = tuple[int, Callable[[Any], bytes | None]]


class _Kinds(dict[type, _Writing]):
    """How values of each type are written; those of a type that is not named, as of the one it inherits."""

    def __missing__(self, kind: type) -> _Writing:
        for base in kind.__mro__:
            if base in self:
                self[kind] = self[base]
                return self[base]
        raise TypeError(f"a value of {kind.__name__} cannot be sent")


_KINDS = _Kinds()
_KINDS[type(None)] = (0, lambda _: None)
_KINDS[str] = (25, str.encode)
_KINDS[bytes] = (17, bytes)
_KINDS[bool] = (16, {True: b"\x01", False: b"\x00"}.__getitem__)
# Always a `bigint`: else each size of number would be a statement to prepare anew.
_KINDS[int] = (20, _NUMBER.pack)
_KINDS[list] = (arrays.TextArray.kind, lambda value: arrays.text_array(value).data)
for _array in arrays.KINDS:
    _KINDS[_array] = (_array.kind, attrgetter("data"))


class Connection(psycopg.Connection[Row]):
    """A connection of the pool's; one thread has it at a time."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        #: By text and types; without a name while a statement was asked once.
        self._statements: dict[tuple[str, tuple[int, ...]], bytes] = {}
        self._numbered = 0
        self._reading: abc.Transformer | None = None
        self.made_at = self.idle_since = time.monotonic()
        #: Whether it has carried something large, and is not to be kept.
        self.is_stretched = False

    def __del__(self, *_: Any) -> None:
        """Say nothing: a process may end without a word, and the server notices."""

    def send(self, query: str, values: Sequence[Any]) -> PGresult:
        """Send a statement that says the types of its values, and is prepared at once.

        Raises:
            psycopg.Error: it was refused, or the connection died.
        """
        written = [None if value is None else _KINDS[type(value)][1](value) for value in values]
        return self._execute(self._statements.get((query, ())) or self._prepare(query, ()), written)

    def ask(self, query: str, values: Sequence[Any] = ()) -> PGresult:
        """Send a statement; it is prepared when it is asked again.

        Raises:
            psycopg.Error: it was refused, or the connection died.
        """
        kinds, written = [], []
        for value in values:
            kind, write = _KINDS[type(value)]
            kinds.append(kind)
            written.append(write(value))
        key = (query, tuple(kinds))
        name = self._statements.get(key)
        if name is None:
            self._remember(key, b"")
            formats = [_BINARY] * len(written)
            self.pgconn.send_query_params(query.encode(), written, kinds, formats, _BINARY)
            return self._answer()
        return self._execute(name or self._prepare(*key), written)

    def read(self, result: PGresult) -> list[Row]:
        """Read the rows of an answer."""
        reading = self._reading = self._reading or Transformer(self)
        reading.set_pgresult(result)
        try:
            found: list[Row] = reading.load_rows(0, result.ntuples, tuple)
        finally:
            # Else it would be kept, however large, until something else is asked.
            reading.set_pgresult(None)
        if len(found) == 1 and any(type(value) is bytes and len(value) > LARGE_BYTES for value in found[0]):
            self.is_stretched = True
        return found

    def _execute(self, name: bytes, written: Sequence[bytes | None]) -> PGresult:
        self.pgconn.send_query_prepared(name, written, [_BINARY] * len(written), _BINARY)
        return self._answer()

    def _prepare(self, query: str, kinds: tuple[int, ...]) -> bytes:
        key = (query, kinds)
        self._remember(key, b"")
        self._numbered += 1
        name = f"holdfast_{self._numbered}".encode()
        self.pgconn.send_prepare(name, query.encode(), kinds)
        self._answer()
        self._statements[key] = name
        return name

    def _remember(self, key: tuple[str, tuple[int, ...]], name: bytes) -> None:
        if key not in self._statements and len(self._statements) >= PREPARED_MAX:
            self._statements.clear()
            self.execute("deallocate all")
        self._statements[key] = name

    def _answer(self) -> PGresult:
        """Wait until the server is ready for more, and answer what it said.

        A statement is committed after its rows were sent: what comes behind them decides.
        """
        results: list[PGresult] = self.wait(generators.execute(self.pgconn))
        for result in results:
            if result.status not in _GOOD:
                raise errors.error_from_result(result, encoding="utf-8")
        if not results:
            raise psycopg.OperationalError("the connection ended without an answer")
        return results[0]
