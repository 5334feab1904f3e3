"""What the driver raises, as errors of ours. Nobody outside this room meets a psycopg exception."""

from __future__ import annotations

import psycopg
from psycopg import errors

from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointReadError,
    CheckpointWriteError,
    DiskFullError,
    InvalidIdError,
    PermissionDeniedError,
    StoreLockedError,
    StoreNotFoundError,
    StoreReadOnlyError,
)

#: The transaction was undone, and may succeed when it is repeated.
PASSING = (errors.SerializationFailure, errors.DeadlockDetected)

_LOG = "See the server's log."

#: By the class of the driver's error: ours, and what to do.
_KINDS: tuple[tuple[tuple[type[psycopg.Error], ...], type[CheckpointError], str], ...] = (
    ((errors.DiskFull,), DiskFullError, "Make room where the server keeps its data."),
    (
        (errors.ReadOnlySqlTransaction,),
        StoreReadOnlyError,
        "The server or the user may only read: connect to the primary server.",
    ),
    (
        (errors.InsufficientPrivilege, errors.InvalidAuthorizationSpecification, errors.InvalidPassword),
        PermissionDeniedError,
        "Grant the user what it lacks, or use another one.",
    ),
    (
        (errors.UndefinedTable, errors.InvalidSchemaName, errors.InvalidCatalogName),
        StoreNotFoundError,
        "Open the store once for writing: that creates it.",
    ),
    ((errors.LockNotAvailable,), StoreLockedError, "Another client holds it: try again."),
    ((errors.DataCorrupted, errors.IndexCorrupted), CheckpointCorruptError, _LOG),
    (
        (errors.CharacterNotInRepertoire, errors.UntranslatableCharacter),
        InvalidIdError,
        "PostgreSQL cannot keep NUL characters in names.",
    ),
)

#: How a server begins that is there and takes no connections yet.
_NOT_READY = "the database system is "
#: What a refused connection says, in the words of a server that speaks English: it gives no code for them.
_REFUSALS: tuple[tuple[tuple[str, ...], type[CheckpointError], str], ...] = (
    (
        ("authentication failed", "no password supplied", "pg_hba.conf", "role ", "permission denied"),
        PermissionDeniedError,
        "Check user and password, and pg_hba.conf on the server.",
    ),
    (("database ",), StoreNotFoundError, "Create the database, or correct its name in the URL."),
)
_MISSING = "does not exist"


def translate(error: psycopg.Error, place: str, *, is_writing: bool) -> CheckpointError:
    """Say an error of the driver's in our words."""
    if isinstance(error, psycopg.DataError) and error.sqlstate is None:
        # The driver refuses NUL characters before anything is sent.
        return InvalidIdError("a name holds what PostgreSQL cannot keep", place=place)
    for kinds, ours, hint in _KINDS:
        if isinstance(error, kinds):
            return ours(told(error), place=place, hint=hint)
    kind = CheckpointWriteError if is_writing else CheckpointReadError
    return kind(f"the database refused: {told(error)}", place=place, hint=_LOG)


def is_getting_ready(fault: psycopg.Error) -> bool:
    """Tell whether a server refused only because it starts, recovers or shuts down at this moment."""
    return _NOT_READY in str(fault)


def translate_refusal(error: psycopg.Error, place: str) -> CheckpointError:
    """Say why no connection could be made."""
    text = told(error)
    for words, ours, hint in _REFUSALS:
        if any(word in text for word in words) and (ours is PermissionDeniedError or _MISSING in text):
            return ours(f"the server refused the connection: {text}", place=place, hint=hint)
    return CheckpointReadError(
        f"the server cannot be reached: {text}",
        place=place,
        hint="Check that it runs, and the host and port in the URL.",
    )


def told(error: psycopg.Error) -> str:
    """Pick the one line of an error that people need."""
    lines = (error.diag.message_primary or str(error) or type(error).__name__).strip().splitlines()
    # Of several addresses that were tried the last one is told; advice stands on lines of its own.
    line = [lines[0], *(line for line in lines if "failed" in line)][-1]
    return line.rpartition("FATAL:  ")[2].strip()


def unknown(why: str, place: str) -> CheckpointWriteError:
    """Say that nobody knows what became of a commit."""
    return CheckpointWriteError(
        f"the connection was lost during the commit, and what became of it could not be found out ({why})",
        place=place,
        hint="Whether it was recorded is unknown: load the latest state before you go on.",
    )


def unwritten(problem: CheckpointError, *, is_repeated: bool) -> CheckpointWriteError:
    """Say that a commit was given up, and whether an earlier try of it may have been kept."""
    if is_repeated:
        return unknown(problem.message, problem.place)
    return CheckpointWriteError(
        f"nothing was recorded: {problem.message}", place=problem.place, hint=problem.hint
    )
