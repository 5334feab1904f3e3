"""Sending the statement of a commit until it is known what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import errors

from holdfast.adapters.postgres import statement
from holdfast.adapters.postgres.batch import Unit
from holdfast.adapters.postgres.connections import ConnectionLost, Connections, Deadline
from holdfast.adapters.postgres.database import ATTEMPTS_MAX
from holdfast.adapters.postgres.faults import PASSING, unwritten
from holdfast.adapters.sql.database import Row
from holdfast.domain.errors import CheckpointError, StoreClosedError


class Attempt:
    """Sending one statement until it is known what became of it."""

    def __init__(self, connections: Connections, *, is_repeated: bool) -> None:
        self._connections = connections
        self._attempts = 0
        self._deadline: Deadline | None = None
        #: Whether rows of an earlier try may be there.
        self.is_repeated = is_repeated

    def may_repeat(self) -> bool:
        self._attempts += 1
        return self._attempts < ATTEMPTS_MAX

    def send(self, units: Sequence[Unit]) -> list[Row]:
        """Answer what the units that did not get in have met.

        Raises:
            psycopg.Error: the statement was refused, and nothing of it was kept.
            CheckpointWriteError: the server is away; says whether anything may have been kept.
        """
        while True:
            try:
                with self._connections.connection() as connection:
                    return statement.send(connection, units)
            except ConnectionLost:
                self.is_repeated = True
                self._await_server()
            except PASSING:
                if not self.may_repeat():
                    raise
            except errors.LockNotAvailable:
                # The transaction whose outcome is sought may still be under way, and only its end tells.
                if not self.is_repeated or len(units) > 1 or self._waited_long_enough():
                    raise
            except CheckpointError as problem:
                if isinstance(problem, StoreClosedError) and not self.is_repeated:
                    raise
                raise self._unwritten(problem) from problem

    def _await_server(self) -> None:
        self._deadline = self._deadline or self._connections.deadline()
        try:
            self._connections.await_server(self._deadline)
        except CheckpointError as problem:
            raise self._unwritten(problem) from problem

    def _waited_long_enough(self) -> bool:
        self._deadline = self._deadline or self._connections.deadline()
        return self._deadline.is_over

    def _unwritten(self, problem: CheckpointError) -> CheckpointError:
        return unwritten(problem, is_repeated=self.is_repeated)
