"""Making a database file ready: whose it is, which journal it keeps, and whether its schema is ours."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from holdfast.adapters.sql import migrations
from holdfast.adapters.sqlite import files
from holdfast.adapters.sqlite.database import SqliteDatabase
from holdfast.adapters.sqlite.driver import Driver
from holdfast.adapters.sqlite.journaling import PRAGMAS, ROLLBACK, WAL, JournalChoice, choose, is_wal_safe
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointWriteError,
    ConfigError,
    StoreLockedError,
    StoreNotFoundError,
)

#: "Hold": written by the first migration.
APPLICATION_ID = 0x486F6C64
#: The first that knows `on conflict`.
_VERSION_MIN = (3, 24, 0)
#: For a moment others may be in the way; for longer they are at work.
_SWITCH_SECONDS = 1.0
#: What SQLite answers for `auto_vacuum`.
_INCREMENTAL = 2
_PACKAGE = "holdfast.adapters.sqlite"


def require_version(driver: Driver) -> None:
    """Refuse an SQLite that does not understand the statements."""
    if driver.version < _VERSION_MIN:
        raise ConfigError(
            f"{driver.title} is too old", hint="`pip install holdfast[sqlite]` brings a newer one."
        )


def prepare(database: SqliteDatabase, *, create: bool, asked: str | None, now: datetime) -> JournalChoice:
    """Make sure that a file is a store of ours, up to date; answer the journal it is used with.

    Raises:
        StoreNotFoundError: the file is empty, and no store is to be made.
        CheckpointCorruptError: the file is no database, or that of another program.
        StoreLockedError: others use it with a journal that is not to be used here.
        UnsupportedVersionError: its schema is newer, or older and may not be changed.
    """
    steps = migrations.read_migrations(_PACKAGE)
    is_new = not database.tables()
    if is_new and (database.read_only or not create):
        raise StoreNotFoundError(
            "the database is empty", place=database.path, hint="`holdfast init` makes a store."
        )
    if not is_new:
        _require_ours(database)
    if database.read_only:
        migrations.require_current(steps, database.applied(), database.path)
        # Asked of the file: SQLite reads one that nobody writes as if it had no journal.
        mode = WAL if files.has_log_mark(database.path) else ROLLBACK
        return JournalChoice(mode, "that is how its writers left it")
    choice = _set_journal(database, asked, is_new=is_new)
    database.may_use_log = choice.mode == WAL or is_wal_safe(database.driver.version)
    migrations.migrate(database, steps, now=now, place=database.path)
    return choice


def _require_ours(database: SqliteDatabase) -> None:
    [(application_id,)] = database.rows("pragma application_id")
    if application_id != APPLICATION_ID:
        raise CheckpointCorruptError(
            "the database belongs to another program",
            place=database.path,
            hint="Nothing was changed. Give the path of another file.",
        )


def _set_journal(database: SqliteDatabase, asked: str | None, *, is_new: bool) -> JournalChoice:
    choice = choose(database.driver.version, asked)
    if is_new:
        _make_reclaimable(database)
    elif asked is None and choice.mode == WAL and _mode(database) == ROLLBACK:
        # Others may have it open with an SQLite that must not use a log, and could not go on writing.
        choice = JournalChoice(ROLLBACK, "the file was made with one, and others may rely on that")
    mode = _switch(database, choice)
    if mode == choice.mode:
        return choice
    if asked is None and mode == ROLLBACK:
        return JournalChoice(ROLLBACK, "others have the file open with one")
    raise StoreLockedError(
        f"others have the database open with another journal ({mode}) than is to be used here "
        f"({choice.mode}: {choice.reason})",
        place=database.path,
        hint="Close it there, or use the same SQLite in both places.",
    )


def _make_reclaimable(database: SqliteDatabase) -> None:
    """Have removed pages given back; once there are tables, that takes a rewrite of the whole file."""
    database.outside("pragma auto_vacuum = incremental")
    if database.outside("pragma auto_vacuum") != [(_INCREMENTAL,)]:
        # A file that somebody else began: not empty, though without tables.
        database.outside("vacuum")


def _switch(database: SqliteDatabase, choice: JournalChoice) -> str:
    """Use a journal, as far as others let us; answer the one that is used."""
    setting = f"pragma journal_mode = {choice.pragma}"
    # Each connection stands in the way, also our own.
    database.close_readers()
    with suppress(CheckpointWriteError):
        database.outside(setting, wait_seconds=_SWITCH_SECONDS)
    mode = _mode(database)
    if mode == ROLLBACK:
        # Told to each connection; the file remembers only a log.
        database.writer_settings = (f"pragma journal_mode = {PRAGMAS[ROLLBACK]}",)
    return mode


def _mode(database: SqliteDatabase) -> str:
    # A connection that has not read since may tell what was; the one that writes knows.
    ask = database.rows if database.read_only else database.outside
    [(mode,)] = ask("pragma journal_mode")
    return WAL if mode == "wal" else ROLLBACK
