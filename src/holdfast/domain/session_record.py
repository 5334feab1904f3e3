"""The record of a session: a small file of the store that says how the session stands.

One line of JSON, which carries its own SHA-256. The trail of the session names that sum with each step, and
so proves what was handed over; the salt keeps the sum from telling what a short summary said.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    ChecksumMismatchError,
    StateTooLargeError,
)
from holdfast.domain.session_context import SessionContext

FOLDER = "sessions/"
RECORD_BYTES_MAX = 1024 * 1024
_SUFFIX = ".json"
_WORD = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
#: What the hash of an id looks like; an id that does is hashed too, so that the two never meet.
_HASHED = re.compile(r"[0-9a-f]{16}")
_HASH_CHARS = 16
#: A record ends with its sum, a quote, a brace and a newline.
_SUM_CHARS = len("sha256:") + 64
_END_CHARS = len('"}\n')
_HINT = "Run `holdfast doctor`; the trail of the session and its workflows are still there."


class SessionStatus(StrEnum):
    """How a session stands."""

    #: Somebody works in it, or did until a crash.
    OPEN = "open"
    #: Waits for a successor.
    HANDED_OFF = "handed_off"
    #: Another session took over.
    RESUMED = "resumed"
    #: Its work is done.
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Session:
    """A session, and where its work came from and went to.

    Attributes:
        id: its name.
        status: how it stands.
        context: what it gives, or would give, to its successor.
        opened_at: when it began.
        updated_at: when it came to stand so.
        continues: the session it took over from.
        continued_by: the session that took over from it.
        checksum: sum of its record; empty where it has none, and is known by its trail alone.
    """

    id: str
    status: SessionStatus
    context: SessionContext
    opened_at: str = ""
    updated_at: str = ""
    continues: str | None = None
    continued_by: str | None = None
    checksum: str = ""


@dataclass(frozen=True, slots=True)
class HandOff:
    """What a session left for its successor, durably.

    Attributes:
        session_id: the session that ended with it, and that its successor resumes.
        context: what it left.
        handed_off_at: when.
        checksum: sum of the record, as the trail names it.
        warnings: what could not be told to a workflow.
    """

    session_id: str
    context: SessionContext
    handed_off_at: str
    checksum: str
    warnings: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """What takes over from here on the command line."""
        return f"holdfast session resume {self.session_id}"


def file_of(session_id: str) -> str:
    """Name the file of a session's record: the id itself where it is a plain word, else a hash of it."""
    is_plain = _WORD.fullmatch(session_id) and not _HASHED.fullmatch(session_id)
    return f"{FOLDER}{session_id if is_plain else _sha256(session_id.encode())[:_HASH_CHARS]}{_SUFFIX}"


def encode_session(session: Session, salt: str) -> tuple[Session, bytes]:
    """Write the record of a session; answer the session with its sum, and the line.

    Raises:
        StateTooLargeError: the record would be no small file.
    """
    fields: dict[str, Any] = {
        **session.context.to_block(),
        "status": str(session.status),
        "opened_at": session.opened_at,
        "updated_at": session.updated_at,
        "continues": session.continues,
        "continued_by": session.continued_by,
        "salt": salt,
        "checksum": "",
    }
    unsigned = plainjson.dumps(fields) + b"\n"
    checksum = _checksum(unsigned)
    data = unsigned[:-_END_CHARS] + checksum.encode() + unsigned[-_END_CHARS:]
    if len(data) > RECORD_BYTES_MAX:
        raise StateTooLargeError(
            f"what is handed over has {len(data)} bytes, the limit is {RECORD_BYTES_MAX}",
            place=session.id,
            hint="Keep large data in a checkpoint of the workflow, and hand over its id.",
        )
    return replace(session, checksum=checksum), data


def decode_session(data: bytes, session_id: str | None = None) -> Session:
    """Read a record after checking it; of the session that is asked for, if one is.

    Raises:
        ChecksumMismatchError: it is not what was written.
        CheckpointCorruptError: it is no record, or that of another session.
    """
    start, found = data[: -_SUM_CHARS - _END_CHARS], data[-_SUM_CHARS - _END_CHARS : -_END_CHARS]
    if found != _checksum(start + data[-_END_CHARS:]).encode():
        raise ChecksumMismatchError(
            "the record of a session is not what was written", place=session_id or "", hint=_HINT
        )
    session = _session(data, found.decode(), session_id or "")
    if session_id is not None and session.id != session_id:
        raise CheckpointCorruptError("the record is that of another session", place=session_id, hint=_HINT)
    return session


def _session(data: bytes, checksum: str, place: str) -> Session:
    try:
        fields = plainjson.loads(data, strict=True)
        context = SessionContext.from_block(fields)
        return Session(
            context.session_id,
            SessionStatus(fields["status"]),
            context,
            fields["opened_at"],
            fields["updated_at"],
            fields.get("continues"),
            fields.get("continued_by"),
            checksum,
        )
    except (CheckpointError, AttributeError, KeyError, TypeError, ValueError) as fault:
        raise CheckpointCorruptError(
            f"the record of a session is none ({fault})", place=place, hint=_HINT
        ) from fault


def _checksum(unsigned: bytes) -> str:
    return "sha256:" + _sha256(unsigned)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
