"""What the connection that writes relies on, and others can take away: its journal.

SQLite's locks belong to the process. A second SQLite library in it that opens and closes the same file drops
them; then somebody else, closing, takes himself for the last and removes the write-ahead log that is still
written here. SQLite does not notice: what it commits goes into a file without a name, and is lost.
"""

from __future__ import annotations

from holdfast.adapters.sqlite.driver import Connection
from holdfast.adapters.sqlite.place import Identity, identity
from holdfast.domain.errors import CheckpointWriteError, StoreLockedError


class Watch:
    """Knows the journal of one connection."""

    __slots__ = ("_connection", "_log", "_log_path", "_path", "_uses_log", "_version")

    def __init__(self, path: str, connection: Connection) -> None:
        self._path = path
        self._log_path = f"{path}-wal"
        self._connection = connection
        self._version: int | None = None
        self._uses_log = False
        #: Device and number of the log when the connection began to use it.
        self._log: Identity | None = None

    def note_log(self) -> None:
        """Remember the log as soon as the connection may have opened it."""
        [(mode,)] = self._connection.execute("pragma journal_mode").fetchall()
        self._uses_log = mode == "wal"
        if not self._uses_log:
            self._log = None
        elif self._log is None:
            self._log = identity(self._log_path)

    def begin(self, *, may_use_log: bool) -> int:
        """Look which journal is used, in a transaction that has begun: if others changed something, anew.

        Answers the version of the data, which is another one if they did.
        """
        version: int = self._connection.execute("pragma data_version").fetchall()[0][0]
        if version == self._version:
            return version
        self.note_log()
        if self._uses_log and not may_use_log:
            raise StoreLockedError(
                "others have changed the database to a write-ahead log, which is not safe with this SQLite",
                place=self._path,
                hint="Nothing was written. Close it there, open it here again, or use their SQLite here too.",
            )
        self._version = version
        return version

    def has_lost_log(self) -> bool:
        """Tell whether the log that the connection writes is no more the one beside the database."""
        if not self._uses_log:
            return False
        found = identity(self._log_path)
        return found is None or found != self._log


def lost_log(path: str) -> CheckpointWriteError:
    """Say that a commit went into a log that is not the database's."""
    return CheckpointWriteError(
        "the write-ahead log was removed while it was written: something in this process opened and closed "
        "the file past the store",
        place=path,
        hint="Whether the last commit is durable is unknown; read it back before repeating it. "
        "Look at the file from another process, or through the store.",
    )
