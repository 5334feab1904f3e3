"""Opening the trail of a store: for looking at it, and for signing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.cli.group import Call
from holdfast.cli.opening import reading, writing

# Imported where they are used: help must not wait for codecs and threads.
if TYPE_CHECKING:
    from holdfast.application.audit.audit_log import AuditLog
    from holdfast.application.kit import Kit
    from holdfast.domain.audit_entry import AuditEntry


@contextmanager
def looking(call: Call) -> Iterator[tuple[Kit, AuditLog]]:
    """Open a store for reading, with its log, which tells nothing by itself: `opening.tell` does."""
    with reading(call) as kit:
        yield kit, log_over(kit)


def log_over(kit: Kit) -> AuditLog:
    """Answer the log of a store that is open for reading."""
    from dataclasses import replace

    from holdfast.application.audit.audit_log import AuditLog
    from holdfast.application.audit.log_keeping import LogKeeper
    from holdfast.application.commit_queue import CommitQueue
    from holdfast.application.trailing import Trail

    silent = replace(kit, audit=False)
    trail = Trail(silent, CommitQueue(kit.store.commit))
    return AuditLog(silent, trail, LogKeeper(silent, trail))


@contextmanager
def keeping(call: Call, *, reason: str | None = None) -> Iterator[AuditLog]:
    """Open a store for changing it, with its log."""
    with writing(call, reason=reason) as service:
        yield service.audit


def anchor_if_possible(call: Call) -> None:
    """Sign the head where the key is, so that what is handed out is covered; elsewhere leave it as it is."""
    from contextlib import suppress

    from holdfast.domain.errors import CheckpointError

    with suppress(CheckpointError), keeping(call) as log:
        log.keeper.anchor()


def parse_name(text: str) -> tuple[str, int | str]:
    """Read `SESSION#SEQ` or `SESSION:ID`; answer the session and the number or id.

    Raises:
        click.UsageError: it is neither.
    """
    import click

    session_id, mark, number = text.rpartition("#")
    if mark and session_id and number.isascii() and number.isdecimal():
        return session_id, int(number)
    session_id, mark, entry_id = text.rpartition(":")
    if mark and session_id and entry_id:
        return session_id, entry_id
    raise click.UsageError(f"{text!r} names no entry; write SESSION#SEQ or SESSION:ID")


def find_session(kit: Kit, session_id: str) -> str:
    """Answer a session's id if it has a trail; where it has none, say what may have been meant."""
    from holdfast.cli.group import did_you_mean
    from holdfast.domain.errors import CheckpointNotFoundError
    from holdfast.domain.ids import check_session_id

    check_session_id(session_id)
    if not kit.store.trail_head(session_id).seq:
        hint = did_you_mean(session_id, kit.store.sessions()) or "See `holdfast audit log` for what is there."
        raise CheckpointNotFoundError("there is no such session", place=session_id, hint=hint)
    return session_id


def find_line(kit: Kit, text: str) -> tuple[AuditEntry, bytes]:
    """Find the entry that was written; answer it with its line.

    Raises:
        CheckpointNotFoundError: there is none.
    """
    from holdfast.cli.group import did_you_mean
    from holdfast.domain.errors import CheckpointNotFoundError
    from holdfast.domain.trail import decode_entry

    session_id, wanted = parse_name(text)
    after = wanted - 1 if isinstance(wanted, int) and wanted > 0 else 0
    for line in kit.store.trail(session_id, after=after):
        entry = decode_entry(line, None)
        if wanted in (entry.seq, entry.id):
            return entry, line
        if isinstance(wanted, int):
            break
    last = kit.store.trail_head(session_id).seq
    known = f"{session_id} has entries 1 to {last}." if last else ""
    hint = known or did_you_mean(session_id, kit.store.sessions())
    raise CheckpointNotFoundError("there is no such audit entry", place=text, hint=hint)
