"""Sessions: stretches of work that end with a hand-off, a close or a crash, and that others go on with.

How a session stands is a small file of the store, changed by compare-and-set together with the entries of
the trail that tell of it. A session that nobody opened is known by its trail: it can be handed off and
resumed all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from holdfast.application.commit_queue import Ticket
from holdfast.application.kit import Kit
from holdfast.application.lenient import plain_again, revive_known
from holdfast.application.reading import Reader
from holdfast.application.session_files import SessionFiles, Stored
from holdfast.application.sessions.context_watch import ContextWatch
from holdfast.application.sessions.passing_on import PassingOn
from holdfast.application.sessions.session_state import Gathering, SessionState, decisions_of, state_fields
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer
from holdfast.domain.audit_entry import TrailHead
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointConflictError, InvalidIdError, InvalidStateError
from holdfast.domain.ids import check_session_id, check_workflow_id
from holdfast.domain.record import NO_WORKFLOW
from holdfast.domain.session_context import Agent, AgentLike, SessionContext, as_agent, check_usage
from holdfast.domain.session_record import HandOff, Session, SessionStatus
from holdfast.domain.time import timestamp_text

_ATTEMPTS_MAX = 100
_ID_CHARS = 8


class WorkingSessions:
    """Opens, closes, hands off and resumes sessions."""

    def __init__(
        self, kit: Kit, trail: Trail, writer: Writer, reader: Reader, wait: Callable[[Ticket], object]
    ) -> None:
        self._kit = kit
        self._trail = trail
        self._passing_on = PassingOn(kit.store, writer, wait)
        self._files = SessionFiles(kit, trail)
        self._gathering = Gathering(kit, reader, trail)
        self._watches: dict[str, ContextWatch] = {}

    def open_session(
        self,
        session_id: str | None = None,
        *,
        agent: AgentLike | None = None,
        workflow_ids: Iterable[str] = (),
        watch: ContextWatch | None = None,
    ) -> Session:
        """Begin a session.

        Args:
            session_id: its name; that of this opening of the store by default, under which everything that
                is recorded here is told in the trail.
            agent: who works in it: an id, an `Agent`, or its fields.
            workflow_ids: what is worked on; what the trail of the session tells of is added by itself.
            watch: what to do when the context window fills; see `report_context_usage`.

        Raises:
            InvalidStateError: there is, or was, a session of that name.
        """
        name = check_session_id(session_id or self._kit.session_id)
        with self._trail.refusals(NO_WORKFLOW):
            context = self._context(name, agent, workflow_ids)
            moment = self._now()
            opened = Session(name, SessionStatus.OPEN, context, moment, moment)
            try:
                session = self._files.commit(AuditType.SESSION_STARTED, [(opened, None)])[0]
            except CheckpointConflictError:
                raise self._taken_name(name) from None
        if watch is not None:
            self._watches[name] = watch
        return session

    def close_session(self, session_id: str | None = None, *, summary: str | None = None) -> Session:
        """End a session whose work is done: nobody has to go on with it.

        Raises:
            CheckpointNotFoundError: there is no such session.
            InvalidStateError: it was handed off or closed before, or another took over.
        """

        def closed(session: Session) -> Session:
            context = session.context if summary is None else replace(session.context, summary=summary)
            return replace(session, status=SessionStatus.CLOSED, context=context, updated_at=self._now())

        return self._ended(session_id, AuditType.SESSION_CLOSED, "closed", closed)

    def hand_off(
        self,
        session_id: str | None = None,
        target_agent: AgentLike | None = None,
        summary: str | None = None,
        payload: Mapping[str, Any] | None = None,
        *,
        context_usage: float | None = None,
    ) -> HandOff:
        """End a session and leave everything that its successor needs, durably, in one call.

        Args:
            session_id: the session; that of this opening by default. It need not have been opened.
            target_agent: who is to go on: an id, an `Agent`, or its fields; the same agent by default.
            summary: what was done and what comes next; what the states of its workflows say by default.
            payload: whatever else the successor needs: anything that a state may hold; by default what the
                session was given itself.
            context_usage: how full the context window is, from 0 to 1.

        Raises:
            CheckpointNotFoundError: there is no such session.
            InvalidStateError: it was handed off or closed before, or another took over.
        """
        target, usage = as_agent(target_agent), None if context_usage is None else check_usage(context_usage)
        given = None if payload is None else self._plain(payload)
        moment = self._now()

        def handed(session: Session) -> Session:
            context = session.context
            context = replace(
                context,
                target_agent=target or context.target_agent or context.source_agent,
                summary=self._summary(context) if summary is None else summary,
                payload=context.payload if given is None else given,
                context_usage=context.context_usage if usage is None else usage,
            )
            return replace(session, status=SessionStatus.HANDED_OFF, context=context, updated_at=moment)

        session = self._ended(session_id, AuditType.SESSION_HANDED_OFF, "handed off", handed)
        warnings = self._passing_on.hand_off(session)
        return HandOff(session.id, self._revived(session.context), moment, session.checksum, warnings)

    def resume_session(
        self,
        session_id: str,
        new_session_id: str | None = None,
        *,
        agent: AgentLike | None = None,
        skip_validation: bool = False,
    ) -> SessionState:
        """Take over from a session that was handed off, or that crashed, and answer where it stands.

        Of several who try at once one succeeds; for the others the session was taken over.

        Args:
            session_id: the session that ended.
            new_session_id: the one that goes on; by default that of this opening of the store, or one with
                a new name where that is in use.
            agent: who goes on; whom the hand-off named by default.
            skip_validation: also believe a record that the trail does not confirm, where the trail was
                switched off meanwhile.

        Raises:
            CheckpointNotFoundError: there is no such session.
            CheckpointConflictError: another session took over; the hint names it.
            InvalidStateError: it was closed, or there is a session of the new name already.
            ChecksumMismatchError: its record is not the one that its trail tells of.
        """
        with self._trail.refusals(NO_WORKFLOW):
            find = self._files.load if skip_validation else self._files.confirmed
            stored = find(check_session_id(session_id))
            self._check_resumable(stored.session)
            old = self._files.with_workflows(stored.session)
            new = self._successor(old, new_session_id, as_agent(agent))
            head = self._take_over(replace(stored, session=old), new)
        return self._state(old, new, head)

    def report_context_usage(
        self, session_id: str | None, fraction: float, *, threshold: float | None = None
    ) -> HandOff | None:
        """Say how full a session's context window is; hand the session off once that is too full.

        Cheap enough for every turn: nothing is written before the hand-off.

        Args:
            session_id: the session; None: that of this opening.
            fraction: used tokens divided by the size of the window.
            threshold: from where on the session is handed off; that of its watch by default.

        Returns:
            What was left for the successor, or None while there is room.
        """
        name = session_id or self._kit.session_id
        watch = self._watches.get(name) or ContextWatch()
        used = check_usage(fraction)
        if used < (watch.threshold if threshold is None else check_usage(threshold)):
            return None
        left = watch.prepare(name, used)
        handed = self.hand_off(name, left.target_agent, left.summary, left.payload, context_usage=used)
        # Once: whatever is reported after this is reported of a session that has ended.
        self._watches.pop(name, None)
        watch.tell(handed)
        return handed

    def watch_context(self, session_id: str | None = None, *, watch: ContextWatch) -> None:
        """Set what to do when the context window of a session fills, in place of what was set before."""
        self._watches[check_session_id(session_id or self._kit.session_id)] = watch

    def get(self, session_id: str) -> Session:
        """Tell how a session stands; one that nobody opened is told by its trail.

        Raises:
            CheckpointNotFoundError: there is no such session.
        """
        session = self._files.with_workflows(self._files.load(check_session_id(session_id)).session)
        return replace(session, context=self._revived(session.context))

    def listing(self) -> list[Session]:
        """Tell the sessions that were opened, handed off or resumed, the one that changed last first."""
        return [replace(one, context=self._revived(one.context)) for one in self._files.listing()]

    def new_name(self) -> str:
        """Make a name for a session that nobody used yet."""
        return f"session-{self._kit.ids.new().replace('-', '')[-_ID_CHARS:]}"

    def fields(self, state: SessionState) -> dict[str, Any]:
        """Write what a session begins with as a plain tree, which JSON has words for."""
        kit = self._kit
        return state_fields(state, lambda value: plain_again(value, kit.registry, kit.packer))

    def _context(self, name: str, agent: AgentLike | None, workflow_ids: Iterable[str]) -> SessionContext:
        named = tuple(dict.fromkeys(check_workflow_id(one) for one in workflow_ids))
        return SessionContext(name, as_agent(agent), workflow_ids=named)

    def _ended(
        self, session_id: str | None, type: AuditType, how: str, ended: Callable[[Session], Session]
    ) -> Session:
        """Let a session end, whatever others change of it meanwhile."""
        name = check_session_id(session_id or self._kit.session_id)
        with self._trail.refusals(NO_WORKFLOW):
            for _ in range(_ATTEMPTS_MAX):
                stored = self._files.load(name, is_own=name == self._kit.session_id)
                _check_open(stored.session, how)
                session = ended(self._files.with_workflows(stored.session))
                with suppress(CheckpointConflictError):
                    return self._files.commit(type, [(session, stored.data)])[0]
            raise CheckpointConflictError("others change the session without pause", place=name)

    def _summary(self, context: SessionContext) -> str:
        """Say what the states of a session's workflows say of themselves."""
        read = (self._gathering.workflow(one) for one in context.workflow_ids)
        told = [(one.workflow_id, one.state.context_summary) for one in read if one.state is not None]
        # What it was given itself is better than nothing.
        return "\n".join(f"{name}: {summary}" for name, summary in told if summary) or context.summary

    def _check_resumable(self, session: Session) -> None:
        if session.status is SessionStatus.RESUMED:
            raise CheckpointConflictError(
                f"session {session.continued_by!r} took over",
                place=session.id,
                hint=f"Resume {session.continued_by!r} if that one stopped, too.",
            )
        if session.status is SessionStatus.CLOSED:
            raise InvalidStateError(
                "the session was closed: its work is done",
                place=session.id,
                hint="Open a new session for the same workflows.",
            )

    def _successor(self, old: Session, new_session_id: str | None, agent: Agent | None) -> Session:
        """Make the session that goes on with another."""
        name = check_session_id(new_session_id or self._free_name(old.id))
        if name == old.id:
            raise InvalidIdError("a session cannot go on with itself", place=name, hint="Give another name.")
        before = old.context
        source = agent or before.target_agent or before.source_agent
        context = replace(before, session_id=name, source_agent=source, target_agent=None, context_usage=None)
        moment = self._now()
        return Session(name, SessionStatus.OPEN, context, moment, moment, continues=old.id)

    def _free_name(self, old_id: str) -> str:
        own = self._kit.session_id
        if own != old_id and not self._files.exists(own):
            return own
        return self.new_name()

    def _take_over(self, stored: Stored, new: Session) -> TrailHead:
        """Commit both records and the entries that link the two trails; answer where the old one stood."""
        old, head = stored.session, self._kit.store.trail_head(stored.session.id)
        taken = replace(old, status=SessionStatus.RESUMED, continued_by=new.id, updated_at=new.opened_at)
        try:
            self._files.commit(
                AuditType.SESSION_RESUMED,
                [(taken, stored.data), (new, None)],
                from_hash=head.hash,
                from_seq=head.seq,
            )
        except CheckpointConflictError:
            self._check_resumable(self._files.load(old.id).session)
            if self._files.exists(new.id):
                raise self._taken_name(new.id) from None
            raise
        return head

    def _state(self, old: Session, new: Session, head: TrailHead) -> SessionState:
        told = self._passing_on.take_over(new)
        workflows = tuple(self._gathering.workflow(one, new.id) for one in new.context.workflow_ids)
        pending = tuple(event for one in workflows for event in one.pending_events)
        return SessionState(
            new.id,
            old.id,
            old.status is SessionStatus.HANDED_OFF,
            self._revived(old.context),
            decisions_of(workflows),
            pending,
            workflows,
            head.hash,
            (*_how_it_ended(old, head), *told, *(said for one in workflows for said in one.warnings)),
        )

    def _plain(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        plain: dict[str, Any] = self._kit.packer.unpack(self._kit.packer.pack(dict(payload)))
        return plain

    def _revived(self, context: SessionContext) -> SessionContext:
        """Answer what was handed over as it was given, as far as its types are known here."""
        return replace(context, payload=revive_known(dict(context.payload), self._kit.registry))

    def _taken_name(self, name: str) -> InvalidStateError:
        return InvalidStateError(
            "there is a session of that name", place=name, hint="Resume it, or choose another name."
        )

    def _now(self) -> str:
        return timestamp_text(self._kit.clock.now())


def _check_open(session: Session, how: str) -> None:
    """Refuse to end a session that ended before."""
    if session.status is SessionStatus.OPEN:
        return
    before, hint = {
        SessionStatus.HANDED_OFF: (
            f"was handed off at {session.updated_at}",
            f"Take over with `holdfast session resume {session.id}`.",
        ),
        SessionStatus.CLOSED: (
            f"was closed at {session.updated_at}",
            "Open a new session for the same workflows.",
        ),
        SessionStatus.RESUMED: (
            f"goes on as {session.continued_by!r}",
            f"Work in {session.continued_by!r}: what is recorded here is not part of it.",
        ),
    }[session.status]
    raise InvalidStateError(f"a session that {before} cannot be {how}", place=session.id, hint=hint)


def _how_it_ended(old: Session, head: TrailHead) -> tuple[str, ...]:
    if old.status is SessionStatus.HANDED_OFF:
        return ()
    said = f"session {old.id} was neither handed off nor closed"
    if head.closed:
        return (f"{said}: its process ended in order, and left no summary.",)
    return (
        f"{said}: it crashed, or still runs. What it did not record is lost; what it records from now on is "
        "not part of this session.",
    )
