"""The schema as ordered, checksummed files: `NNNN_name.sql`, each applied once, in one transaction.

A file that was released never changes: what a database says it has applied is compared with it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Protocol

from holdfast.adapters.sql.database import Parameters, Reads, Row, Script
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointSchemaError,
    DiskFullError,
    MigrationFailedError,
    PermissionDeniedError,
    UnsupportedVersionError,
)
from holdfast.domain.time import timestamp_text
from holdfast.domain.value import value

_FILE_NAME = re.compile(r"(?P<version>[0-9]{4})_(?P<name>[a-z0-9_]+)\.sql")

_TABLE = """
create table if not exists schema_migrations (
    version integer primary key, name text not null, checksum text not null, applied_at text not null
)
"""

_APPLIED = "select version, name, checksum from schema_migrations order by version"

_NOTE = """
insert into schema_migrations (version, name, checksum, applied_at)
values (:version, :name, :checksum, :applied_at)
"""


@value
class Migration:
    """One step of the schema."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text."""
        return "sha256:" + hashlib.sha256(self.sql.encode()).hexdigest()


class Migrating(Protocol):
    """A database whose schema can be changed."""

    def applied(self) -> list[Row]:
        """What `applied_to` answers, or nothing where there is no schema yet."""

    def migrating(self) -> AbstractContextManager[Script]:
        """Begin a transaction that only one in the world has at a time: others wait for it to end."""


@cache
def read_migrations(package: str) -> tuple[Migration, ...]:
    """Read the migrations that lie in the folder `migrations` of a package, in order."""
    folder = resources.files(package).joinpath("migrations")
    found = []
    for file in folder.iterdir():
        named = _FILE_NAME.fullmatch(file.name)
        if named:
            # A checkout may have given the lines other ends.
            text = file.read_text(encoding="utf-8").replace("\r\n", "\n")
            found.append(Migration(int(named["version"]), named["name"], text))
    return tuple(sorted(found, key=lambda migration: migration.version))


def applied_to(reads: Reads) -> list[Row]:
    """Answer version, name and checksum of each migration that was applied; the table must be there."""
    return reads.rows(_APPLIED)


def pending(migrations: Sequence[Migration], applied: Sequence[Row], place: str) -> list[Migration]:
    """Answer the migrations that are still to be applied.

    Raises:
        UnsupportedVersionError: the database is newer than this program.
        MigrationFailedError: what was applied is not what this program would have applied.
    """
    known = {migration.version: migration for migration in migrations}
    newest = max(known, default=0)
    for version, name, _ in applied:
        if version > newest:
            raise UnsupportedVersionError(
                f"the store has schema {version} ({name}), this Holdfast knows schemas up to {newest}",
                place=place,
                hint="Upgrade Holdfast.",
            )
    for at, (version, name, checksum) in enumerate(applied, start=1):
        if version != at or known[version].checksum != checksum:
            raise MigrationFailedError(
                f"schema migration {version} ({name}) is not the one this Holdfast would have applied",
                place=place,
                hint="Use the Holdfast that made this store, and copy it into a new one.",
            )
    return list(migrations[len(applied) :])


def migrate(database: Migrating, migrations: Sequence[Migration], *, now: datetime, place: str) -> None:
    """Bring a schema up to date. Several may do so at once: each step is made by one of them.

    Raises:
        UnsupportedVersionError: the database is newer than this program.
        MigrationFailedError: a step failed, or what was applied is not what this program would have applied.
    """
    # A schema that is current needs no lock.
    while waiting := pending(migrations, database.applied(), place):
        step = waiting[0]
        try:
            with database.migrating() as transaction:
                transaction.run(_TABLE)
                # Somebody else may have been faster.
                for step in pending(migrations, applied_to(transaction), place)[:1]:
                    transaction.script(step.sql)
                    transaction.run(_NOTE, _note(step, now))
        except (CheckpointSchemaError, DiskFullError, PermissionDeniedError):
            raise
        except CheckpointError as problem:
            raise MigrationFailedError(
                f"schema migration {step.version} ({step.name}) failed: {problem.message}",
                place=place,
                hint="The schema is as it was before.",
            ) from problem


def require_current(migrations: Sequence[Migration], applied: Sequence[Row], place: str) -> None:
    """Refuse a schema that this program would have to change before it reads.

    Raises:
        UnsupportedVersionError: the schema is newer, or older.
        MigrationFailedError: what was applied is not what this program would have applied.
    """
    if pending(migrations, applied, place):
        raise UnsupportedVersionError(
            f"the store has schema {len(applied)}, this Holdfast reads schema {len(migrations)}",
            place=place,
            hint="Open it once for writing: that brings it up to date.",
        )


def _note(step: Migration, now: datetime) -> Parameters:
    return {
        "version": step.version,
        "name": step.name,
        "checksum": step.checksum,
        "applied_at": timestamp_text(now),
    }
