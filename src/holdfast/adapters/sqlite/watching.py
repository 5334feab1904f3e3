"""What the connection that writes relies on, and others can take away: its journal.

SQLite's locks belong to the process. A second SQLite library in it that opens and closes the same file drops
them; then somebody else, closing, takes himself for the last and removes the write-ahead log that is still
written here. SQLite does not notice: what it commits goes into a file without a name, and is lost.

SQLite would also move a long log into the file by itself, and tell nobody if the disk fails then: it would
write the same again the next time, which ext4 takes for written and does not keep. So that is done here,
where the error is heard.
"""

from __future__ import annotations

from holdfast.adapters.file_status import Identity, identity, status
from holdfast.adapters.sqlite.driver import Connection
from holdfast.domain.errors import CheckpointWriteError, StoreLockedError

#: Told to the connection that writes.
NEVER_BY_ITSELF = "pragma wal_autocheckpoint = 0"
_MOVE_LOG = "pragma wal_checkpoint(passive)"
#: About as often as SQLite does it, after a thousand pages. What was moved is written over, so that the size
#: alone does not tell how much is in the log.
_COMMITS_MAX = 100
_GROWTH_MAX_BYTES = 4 * 1024 * 1024


class Watch:
    """Knows the journal of one connection."""

    __slots__ = (
        *("_commits", "_connection", "_log", "_log_bytes", "_log_path"),
        *("_moved_bytes", "_path", "_uses_log", "_version"),
    )

    def __init__(self, path: str, connection: Connection) -> None:
        self._path = path
        self._log_path = f"{path}-wal"
        self._connection = connection
        self._version: int | None = None
        self._uses_log = False
        #: Device and number of the log when the connection began to use it.
        self._log: Identity | None = None
        #: How large it is, and was when it was last moved; the commits since.
        self._log_bytes = self._moved_bytes = self._commits = 0

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
        try:
            device, number, self._log_bytes = status(self._log_path)
        except FileNotFoundError:
            return True
        return (device, number) != self._log

    def is_log_long(self) -> bool:
        """Count a commit; tell whether the log is to be moved into the file."""
        self._commits += 1
        is_grown = self._log_bytes - self._moved_bytes >= _GROWTH_MAX_BYTES
        return self._uses_log and (is_grown or self._commits >= _COMMITS_MAX)

    def move_log(self) -> None:
        """Move it, as far as those let us who read in it; what they still need waits for the next time."""
        self._commits, self._moved_bytes = 0, self._log_bytes
        self._connection.execute(_MOVE_LOG).fetchall()


def lost_log(path: str) -> CheckpointWriteError:
    """Say that a commit went into a log that is not the database's."""
    return CheckpointWriteError(
        "the write-ahead log was removed while it was written: something in this process opened and closed "
        "the file past the store",
        place=path,
        hint="Whether the last commit is durable is unknown; read it back before repeating it. "
        "Look at the file from another process, or through the store.",
    )
