"""The records of sessions in a store: found, checked against the trail, and changed by compare-and-set."""

from __future__ import annotations

import secrets
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.application.kit import Kit
from holdfast.application.redaction.redacting import StoreRedactor
from holdfast.application.trailing import Trail
from holdfast.domain import plainjson
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
    StoreDamageWarning,
)
from holdfast.domain.release import PRODUCER_FACT, __version__
from holdfast.domain.session_context import SessionContext
from holdfast.domain.session_record import (
    FOLDER,
    Session,
    SessionStatus,
    decode_session,
    encode_session,
    file_of,
)
from holdfast.domain.time import timestamp_text
from holdfast.domain.trail import decode_entry

#: The fact that names the sum of a session's record.
RECORD_FACT = "record"
_SALT_BYTES = 16
_RECORD = f'"{RECORD_FACT}":"'.encode()
#: Stands for the sum of a record that was taken away.
_NO_RECORD = "none"
#: Entries that tell of work on a workflow; others tell of looking at it.
_WORK = frozenset(
    {
        AuditType.WORKFLOW_STARTED,
        AuditType.WORKFLOW_COMPLETED,
        AuditType.WORKFLOW_FAILED,
        AuditType.WORKFLOW_FORKED,
        AuditType.WORKFLOW_RECOVERED,
        AuditType.AGENT_SPAWNED,
        AuditType.AGENT_DECISION,
        AuditType.TASK_ASSIGNED,
        AuditType.TASK_COMPLETED,
        AuditType.EVENT_RECORDED,
        AuditType.CHECKPOINT_CREATED,
        AuditType.APPROVAL_REQUESTED,
        AuditType.APPROVAL_GRANTED,
        AuditType.APPROVAL_DENIED,
    }
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A session, and the bytes of its record as they are stored; None if it has none."""

    session: Session
    data: bytes | None


@dataclass(frozen=True, slots=True)
class Bare:
    """Records without what was handed over, what they were, and the entries that tell of it."""

    files: dict[str, bytes | None] = field(default_factory=dict)
    expected: dict[str, bytes | None] = field(default_factory=dict)
    told: list[AuditEntry] = field(default_factory=list)


class SessionFiles:
    """Reads and writes the records of one store."""

    def __init__(self, kit: Kit, trail: Trail | None = None) -> None:
        """Take a store, and what tells of changes; without that nothing is changed."""
        self._kit = kit
        self._trail = trail

    def exists(self, session_id: str) -> bool:
        """Tell whether a session has a record."""
        return self._kit.store.file(file_of(session_id)) is not None

    def load(self, session_id: str, *, is_own: bool = False) -> Stored:
        """Answer a session by its record, or by its trail where it has none.

        Args:
            is_own: it is the session of this opening, which is there although nothing was recorded yet.

        Raises:
            CheckpointNotFoundError: it has neither.
        """
        data = self._kit.store.file(file_of(session_id))
        if data is not None:
            line = self._opened(file_of(session_id), data)
            return Stored(decode_session(line, session_id), data)
        head = self._kit.store.trail_head(session_id)
        if not head.seq and not is_own:
            raise CheckpointNotFoundError(
                "there is no such session", place=session_id, hint="See `holdfast session list`."
            )
        first = next(self._kit.store.trail(session_id), None)
        began = self._kit.clock.now() if first is None else decode_entry(first, None).timestamp
        since = timestamp_text(began)
        context = SessionContext(session_id)
        return Stored(Session(session_id, SessionStatus.OPEN, context, since, head.timestamp or since), None)

    def listing(self) -> list[Session]:
        """Answer all sessions that have a record, the one that changed last first."""
        sessions = [session for session, _ in self.lines()]
        return sorted(sessions, key=lambda one: (one.updated_at, one.id), reverse=True)

    def lines(self) -> Iterator[tuple[Session, bytes]]:
        """Answer all sessions with their records as they were written; one that is damaged hides no other."""
        for name, data in self._stored():
            try:
                line = self._opened(name, data)
                yield decode_session(line), line
            except CheckpointCorruptError as problem:
                warnings.warn(f"{name}: {problem.message}", StoreDamageWarning, stacklevel=3)

    def _stored(self) -> Iterator[tuple[str, bytes]]:
        for name in self._kit.store.files(FOLDER):
            data = self._kit.store.file(name)
            if data is not None:
                yield name, data

    def confirmed(self, session_id: str) -> Stored:
        """Answer a session whose record is the one that its trail tells of.

        Raises:
            CheckpointNotFoundError: there is no such session.
            ChecksumMismatchError: the trail tells of another record.
        """
        stored = self.load(session_id)
        while not self._is_told(stored.session):
            again = self.load(session_id)
            if again.data == stored.data:
                raise ChecksumMismatchError(
                    "the record of the session is not the one that its trail tells of",
                    place=session_id,
                    hint="Find out who wrote to the store. Was its trail switched off meanwhile? Then resume "
                    "the session with skip_validation.",
                )
            # Somebody changed it between the two looks.
            stored = again
        return stored

    def _is_told(self, session: Session) -> bool:
        """Compare a record with the last that the trail of the session tells of, if it tells of any."""
        told = ""
        for line in self._kit.store.trail(session.id):
            if _RECORD in line:
                told = str(decode_entry(line, None).facts.get(RECORD_FACT, told))
        return told in ("", session.checksum or _NO_RECORD)

    def unconfirmed(self) -> Iterator[CheckpointError]:
        """Tell of all sessions whose record is not the one that their trail tells of, and why not."""
        known = set()
        for session_id in self._kit.store.sessions():
            known.add(file_of(session_id))
            try:
                self.confirmed(session_id)
            except CheckpointError as problem:
                yield problem
        for name, data in self._stored():
            # One whose session has no trail is compared with its own sum.
            try:
                if name not in known:
                    decode_session(self._opened(name, data))
            except CheckpointError as problem:
                problem.place = problem.place or name
                yield problem

    def with_workflows(self, session: Session) -> Session:
        """Add the workflows that were worked on in a session by its trail."""
        found = dict.fromkeys(session.context.workflow_ids)
        for line in self._kit.store.trail(session.id):
            if b'"workflow":' in line:
                entry = decode_entry(line, None)
                if entry.workflow_id is not None and entry.type in _WORK:
                    found[entry.workflow_id] = None
        return replace(session, context=replace(session.context, workflow_ids=tuple(found)))

    def commit(
        self,
        type: AuditType,
        changes: Sequence[tuple[Session, bytes | None]],
        **facts: int | str,
    ) -> list[Session]:
        """Write records in place of what they were, together with the entries that tell of it.

        Args:
            type: what happened.
            changes: each session as it stands now, and the bytes of its record before.
            facts: what else the entries of sessions that go on with another tell.

        Raises:
            CheckpointConflictError: somebody else changed one of them; nothing was written.
        """
        files: dict[str, bytes | None] = {}
        sessions: list[Session] = []
        # Written first of all: it may make a key, which is told before this and has to be earlier.
        for session, _ in changes:
            written, files[file_of(session.id)] = self._written(session)
            sessions.append(written)
        assert self._trail is not None
        if self._trail.has_noted:
            # What was noted before a session ends stands before its end.
            self._trail.join()
        told = [entry for session in sessions for entry in self._told(self._trail, type, session, facts)]
        expected = {file_of(session.id): before for session, before in changes}
        self._trail.commit(tuple(told), files, expected)
        return sessions

    def without_context(self, workflow_ids: Collection[str]) -> Bare:
        """Make anew the records that name erased workflows, without what was handed over with them."""
        assert self._trail is not None
        bare = Bare()
        for name, data in self._stored():
            try:
                session = decode_session(self._opened(name, data))
            except CheckpointCorruptError:
                # Nobody can put it right, and it must keep nobody from being erased.
                if any(plainjson.dumps(workflow_id) in data for workflow_id in workflow_ids):
                    bare.files[name], bare.expected[name] = None, data
                    bare.told.extend(self._told_gone(self._trail, name))
                continue
            is_named = not set(workflow_ids).isdisjoint(session.context.workflow_ids)
            if is_named and (session.context.summary or session.context.payload):
                emptied = replace(session, context=replace(session.context, summary="", payload={}))
                written, bare.files[name] = self._written(emptied)
                bare.expected[name] = data
                bare.told.extend(self._told(self._trail, AuditType.DATA_ERASED, written, {}))
        return bare

    def _told_gone(self, trail: Trail, name: str) -> Iterator[AuditEntry]:
        """Make the entry that tells of a record which was taken away; nobody shall miss it."""
        for session_id in self._kit.store.sessions():
            if file_of(session_id) == name:
                facts = {RECORD_FACT: _NO_RECORD}
                yield from trail.told(AuditType.DATA_ERASED, session_id=session_id, facts=facts)

    def _told(
        self, trail: Trail, type: AuditType, session: Session, facts: Mapping[str, int | str]
    ) -> Iterator[AuditEntry]:
        """Make the entries of one session's trail that tell of a step."""
        context = session.context
        told: dict[str, int | str] = {RECORD_FACT: session.checksum, "workflows": len(context.workflow_ids)}
        if session.continued_by is not None:
            told["by"] = session.continued_by
        elif session.continues is not None and type is AuditType.SESSION_RESUMED:
            told |= {"from": session.continues, **facts}
        if type is AuditType.SESSION_STARTED:
            told[PRODUCER_FACT] = __version__
        if type is AuditType.SESSION_HANDED_OFF and context.target_agent is not None:
            told["to"] = context.target_agent.id
        if type is AuditType.SESSION_HANDED_OFF and context.context_usage is not None:
            told["context_percent"] = round(100 * context.context_usage)
        alone = context.workflow_ids[0] if len(context.workflow_ids) == 1 else None
        agent = context.source_agent.id if context.source_agent is not None else None
        yield from trail.told(type, session_id=session.id, workflow_id=alone, agent=agent, facts=told)
        if type is AuditType.SESSION_RESUMED and session.continued_by is not None:
            # Who took over is the end of it.
            yield from trail.told(AuditType.SESSION_CLOSED, session_id=session.id, agent=agent)

    def _written(self, session: Session) -> tuple[Session, bytes]:
        """Write a record without secrets, sealed where the store is."""
        kit = self._kit
        if kit.redactor is not None:
            session = replace(session, context=_hidden(session.context, kit.redactor))
        written, data = encode_session(session, secrets.token_hex(_SALT_BYTES))
        name = file_of(session.id)
        return written, data if kit.vault is None else kit.vault.seal_file(name, data)

    def _opened(self, name: str, data: bytes) -> bytes:
        return data if self._kit.vault is None else self._kit.vault.open_file(name, data)


def _hidden(context: SessionContext, redactor: StoreRedactor) -> SessionContext:
    """Hide the secrets of what is handed over; names that hold one are refused."""
    redactor.check_names(session_id=context.session_id)
    for agent in (context.source_agent, context.target_agent):
        for kind, text in (agent.to_fields() if agent is not None else {}).items():
            redactor.check_names(**{f"agent_{kind}": text})
    for workflow_id in context.workflow_ids:
        redactor.check_names(workflow_id=workflow_id)
    payload, summary = redactor.tree(dict(context.payload)), redactor.text(context.summary)
    return replace(context, payload=payload, summary=summary)
