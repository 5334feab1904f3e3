"""A database file among threads, processes and forks: one connection writes, others read."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from holdfast.adapters.sql.database import NOTHING, Parameters, Row
from holdfast.adapters.sql.migrations import applied_to
from holdfast.adapters.sqlite import faults, files
from holdfast.adapters.sqlite.driver import Connection, Driver
from holdfast.adapters.sqlite.gate import Gate
from holdfast.adapters.sqlite.patience import Patience
from holdfast.adapters.sqlite.place import Place
from holdfast.adapters.sqlite.source import Source
from holdfast.adapters.sqlite.transaction import SqliteTransaction
from holdfast.adapters.sqlite.watching import NEVER_BY_ITSELF, Watch, lost_log
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointReadError,
    StoreClosedError,
    StoreReadOnlyError,
)

_IDLE_MAX = 8
#: How often a reader that may not write looks again, because the file changed under its eyes.
_READ_ATTEMPTS = 10
#: What a journal may keep of the disk between transactions.
_KEEP_JOURNAL = f"pragma journal_size_limit = {4 * 1024 * 1024}"
#: A rollback journal holds pages as they were; with this it is cut at the moment of the commit.
_CUT_JOURNAL = "pragma journal_size_limit = 0"

_SETTINGS = (
    # It is `Patience` that waits.
    "pragma busy_timeout = 0",
    "pragma foreign_keys = on",
    # A file may come from anywhere: what its schema says must not call functions with effects.
    "pragma trusted_schema = off",
    # A commit is on the disk before it is acknowledged. `full` is the same except for a journal that is
    # deleted: there the deletion is the commit, and `full` leaves it to chance.
    "pragma synchronous = extra",
    _KEEP_JOURNAL,
    # What is erased is overwritten, wherever SQLite had it in the file.
    "pragma secure_delete = on",
)


class SqliteDatabase:
    """An SQLite file. Threads may use it at once; a child of the process opens connections of its own."""

    def __init__(self, path: str, driver: Driver, *, read_only: bool, busy_seconds: float) -> None:
        self.path = path
        self.driver = driver
        self.read_only = read_only
        self.busy_seconds = busy_seconds
        self._own_uri = files.uri(path, "rw")
        self._patience = Patience(driver, busy_seconds)
        #: What is told in our words when the driver raises it.
        self._faults = (driver.error, UnicodeEncodeError, OverflowError, UnicodeDecodeError)
        #: What the connection that writes is told besides, each time it is opened.
        self.writer_settings: tuple[str, ...] = ()
        #: Whether to write also if others have changed the file to a write-ahead log.
        self.may_use_log = True
        #: Called before anybody else has a turn.
        self.when_rolled_back: Callable[[], None] = lambda: None
        self._closed = False
        self._place = Place(path)
        self._begin()
        _OPEN.add(self)

    def _begin(self) -> None:
        """Everything a process needs of its own: at opening, and again after a fork."""
        self.gate = Gate()
        self._turn = threading.Lock()
        self._writer: Connection | None = None
        self._watch: Watch | None = None
        #: With the generation of the source that each was made for.
        self._idle: list[tuple[int, Connection]] = []
        self._source = Source(self.path)

    # -- reading -----------------------------------------------------------------------------

    def rows(self, sql: str, parameters: Parameters = NOTHING) -> list[Row]:
        """Ask a question on a connection of its own: a reader waits for no writer's turn."""
        with self.gate:
            try:
                return self._look(sql, parameters) if self.read_only else self._ask(sql, parameters)
            except self._faults as error:
                raise self._translated(error, writing=False) from error

    def _look(self, sql: str, parameters: Parameters) -> list[Row]:
        """Ask as one who may not write, of a file that others may be changing."""
        for _ in range(_READ_ATTEMPTS):
            try:
                found = self._ask(sql, parameters)
            except self.driver.error as error:
                if faults.needs_writing(self.driver.code(error)):
                    self._source.stand_in()
                elif self._source.is_unchanged():
                    raise
            else:
                if self._source.is_unchanged():
                    return found
        raise CheckpointReadError("the database changes while it is read", place=self.path, hint="Try again.")

    def _ask(self, sql: str, parameters: Parameters) -> list[Row]:
        uri, generation = self._source.current() if self.read_only else (self._own_uri, 0)
        connection = self._take(uri, generation)
        try:
            found = self._patience.run(_fetch, connection, sql, parameters or ())
        except BaseException:
            self._abandon(connection)
            raise
        if self._closed or len(self._idle) >= _IDLE_MAX:
            self._abandon(connection)
        else:
            self._idle.append((generation, connection))
        return found

    def _take(self, uri: str, generation: int) -> Connection:
        self._check_open()
        with suppress(IndexError):
            while True:
                made_for, connection = self._idle.pop()
                if made_for == generation:
                    return connection
                self._abandon(connection)
        return self._connect(uri, "pragma query_only = on")

    def close_readers(self) -> None:
        """Close the connections that nobody reads on; others are opened when needed."""
        with suppress(IndexError):
            while True:
                self._abandon(self._idle.pop()[1])

    def tables(self) -> set[str]:
        """Name the tables."""
        return {name for (name,) in self.rows("select name from sqlite_master where type = 'table'")}

    def applied(self) -> list[Row]:
        """Answer the migrations that were applied, none where there is no schema yet."""
        return applied_to(self) if "schema_migrations" in self.tables() else []

    # -- writing -----------------------------------------------------------------------------

    @contextmanager
    def transaction(self, *, leaves_no_journal: bool = False) -> Iterator[SqliteTransaction]:
        """Begin a transaction that commits at the end of the block, or rolls back if that raises.

        Args:
            leaves_no_journal: Keep nothing of what was before in a rollback journal.
        """
        with self._turn, self.gate:
            try:
                connection, watch = self._writing()
                self._place.check()
                self._patience.let_others_in()
                try:
                    self._patience.run(connection.execute, "begin immediate")
                    version = watch.begin(may_use_log=self.may_use_log)
                    yield SqliteTransaction(connection, version)
                    self._end(connection, leaves_no_journal=leaves_no_journal)
                except BaseException as problem:
                    self._roll_back(connection, problem)
                    raise
            except self._faults as error:
                raise self._translated(error, writing=True) from error
            if watch.has_lost_log():
                self._abandon_all()
                self.when_rolled_back()
                raise lost_log(self.path)
            if watch.is_log_long():
                self._move_log(connection, watch)

    def migrating(self) -> AbstractContextManager[SqliteTransaction]:
        """Begin a transaction; it always keeps every other writer out."""
        return self.transaction()

    def _end(self, connection: Connection, *, leaves_no_journal: bool) -> None:
        if leaves_no_journal:
            connection.execute(_CUT_JOURNAL).fetchall()
        try:
            self._patience.run(connection.execute, "commit")
        finally:
            if leaves_no_journal:
                connection.execute(_KEEP_JOURNAL).fetchall()

    def _move_log(self, connection: Connection, watch: Watch) -> None:
        """Move a long log into the file; what was committed is durable, whatever comes of it."""
        try:
            watch.move_log()
        except self.driver.error as problem:
            self._roll_back(connection, problem)

    def _roll_back(self, connection: Connection, problem: BaseException) -> None:
        with suppress(self.driver.error):
            if connection.in_transaction:
                connection.execute("rollback")
        code = self.driver.code(problem) if isinstance(problem, self.driver.error) else None
        is_fault = code is not None and faults.is_serious(code)
        if code is not None and faults.primary(code) == faults.IOERR:
            # Closing moves the log into the file, and what is written there again may never arrive.
            files.forget(self.path)
            self._abandon_writer()
        elif is_fault or connection.in_transaction:
            # Nothing that the connection remembers is to be trusted.
            self._drop_writer()
        self.when_rolled_back()

    def outside(self, sql: str, *, wait_seconds: float | None = None) -> list[Row]:
        """Run what cannot be part of a transaction on the connection that writes."""
        with self._turn, self.gate:
            try:
                connection, watch = self._writing()
                found = self._patience.run(_fetch, connection, sql, (), seconds=wait_seconds)
                self._patience.run(watch.note_log)
                return found
            except self._faults as error:
                raise self._translated(error, writing=True) from error

    def _writing(self) -> tuple[Connection, Watch]:
        self._check_open()
        if self.read_only:
            raise StoreReadOnlyError(
                "the store was opened for reading only", place=self.path, hint="Open it without read_only."
            )
        if self._writer is None or self._watch is None:
            if files.size_bytes(f"{self.path}-wal"):
                # Somebody died, or closed it on a disk that failed: SQLite does not tell of that.
                files.forget(self.path)
            self._writer = self._connect(self._own_uri, NEVER_BY_ITSELF, *self.writer_settings)
            self._watch = Watch(self.path, self._writer)
        return self._writer, self._watch

    def _drop_writer(self) -> None:
        writer, self._writer, self._watch = self._writer, None, None
        if writer is not None:
            with suppress(self.driver.error):
                writer.close()

    def _abandon_writer(self) -> None:
        writer, self._writer, self._watch = self._writer, None, None
        if writer is not None:
            self._abandon(writer)

    def _abandon(self, connection: Connection) -> None:
        """Close a connection and leave the log as it is.

        The last one that closes moves it into the file, and says nothing if the disk fails: only the one that
        writes does so, which is opened with a look at what was left behind.
        """
        with suppress(self.driver.error):
            self.driver.abandon(connection)

    def _abandon_all(self) -> None:
        """Close every connection and leave the log as it is: it belongs to nobody.

        Connections of a process share the index of the log: one that stayed would give the old to the next.
        """
        self.gate.shut()
        try:
            self._leave()
        finally:
            self.gate.open()

    def _leave(self) -> None:
        self.close_readers()
        self._abandon_writer()

    # -- connections, their faults and their end ---------------------------------------------

    def _connect(self, uri: str, *settings: str) -> Connection:
        if not self.read_only:
            self._place.check()
        connection = self.driver.connect(uri)
        try:
            for setting in (*_SETTINGS, *settings):
                self._patience.run(_fetch, connection, setting, ())
        except BaseException:
            self._abandon(connection)
            raise
        self._place.note()
        return connection

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError("the store is closed", place=self.path, hint="Open it again.")

    def _translated(self, error: Exception, *, writing: bool) -> CheckpointError:
        if isinstance(error, UnicodeDecodeError):
            return faults.unreadable(error, self.path)
        if not isinstance(error, self.driver.error):
            return faults.unbindable(error, self.path)
        code = self.driver.code(error)
        if writing and faults.primary(code) == faults.IOERR:
            files.forget(self.path)
        return faults.fault(
            str(error), code, self.path, writing=writing, waited_seconds=self._patience.seconds
        )

    @property
    def is_writing(self) -> bool:
        """Whether this process has opened it for writing."""
        return self._writer is not None

    def close(self) -> None:
        """Let go of every connection; who comes later is told. Idempotent."""
        with self._turn, self.gate:
            self._closed = True
            if self._place.is_empty:
                # Wherever it is now, it needs the log that is still here, and closing would take that away.
                self._leave()
            self.close_readers()
            self._drop_writer()
            self._source.close()
        _OPEN.discard(self)

    def let_go(self) -> None:
        """Before a fork: close every connection; both sides open others when needed.

        A child would inherit what SQLite remembers of its locks, but not the locks.
        """
        self.close_readers()
        self._drop_writer()

    def leave_to_parent(self) -> None:
        """In a forked child: begin anew; neither use nor close what a fork from inside left open."""
        _INHERITED.extend(connection for _, connection in self._idle)
        if self._writer is not None:
            _INHERITED.append(self._writer)
        self._begin()


def _fetch(connection: Connection, sql: str, parameters: Any) -> list[Row]:
    return connection.execute(sql, parameters).fetchall()


#: Everything that was not closed, for children that inherit it.
_OPEN: weakref.WeakSet[SqliteDatabase] = weakref.WeakSet()
#: Connections of a parent: closing one here could take its locks for ours.
_INHERITED: list[Connection] = []
#: What each thread that forks has shut.
_SHUT: dict[int, list[SqliteDatabase]] = {}


def _before_fork() -> None:
    shut = _SHUT[threading.get_ident()] = list(_OPEN)
    for database in shut:
        database.gate.shut(database.let_go)


def _after_fork_in_parent() -> None:
    for database in _SHUT.pop(threading.get_ident()):
        database.gate.open()


def _after_fork_in_child() -> None:
    _SHUT.clear()
    for database in list(_OPEN):
        database.leave_to_parent()


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
