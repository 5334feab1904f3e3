"""What this process tells the trail: entries that ride on commits, and those that follow when they can.

Whatever changes the store is told in the very commit that changes it. Reads and refusals are noted: they do
not wait for the disk, but go with the next commit, a second later, or at the end, whichever comes first.
"""

from __future__ import annotations

import logging
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar

from holdfast.application.commit_queue import CommitQueue, Lineage, Ticket
from holdfast.application.kit import Kit
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.entry_rules import FACT_CHARS_MAX
from holdfast.domain.errors import (
    CheckpointError,
    InvalidIdError,
    StateTooLargeError,
    StoreClosedError,
    StoreReadOnlyError,
)
from holdfast.domain.ids import check_id
from holdfast.domain.payload import SALT_BYTES, encode_payload
from holdfast.domain.record import NO_WORKFLOW, Commit, Head

NOTED_SECONDS = 1.0
_NOTED_MAX = 256
#: So many wait at most while nothing can be written.
_KEPT_MAX = 10_000
_LOG = logging.getLogger("holdfast")

Facts = Mapping[str, int | str]

_HARMLESS = re.compile(
    "sha256:[0-9a-f]{64}|[A-Za-z0-9_.@-]{0,15}|[a-z]{1,12}(?:_[a-z]{1,12})*|[A-Z]{1,12}(?:_[A-Z]{1,12})*"
    "|session-[0-9a-f]{8}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)

#: So many names that hold no secret are remembered.
_HARMLESS_MAX = 4096
_Name = TypeVar("_Name", str, str | None)

_CORRELATION: ContextVar[str | None] = ContextVar("holdfast_correlation", default=None)
_ACTOR: ContextVar[str | None] = ContextVar("holdfast_actor", default=None)


@contextmanager
def correlate(correlation_id: str) -> Iterator[None]:
    """Tie together in the trail whatever is done inside: all of it carries this id, that of a request say."""
    check_id("correlation", correlation_id)
    token = _CORRELATION.set(correlation_id)
    try:
        yield
    finally:
        _CORRELATION.reset(token)


def correlation() -> str | None:
    """Answer the id that ties together what is done at this moment; None where nobody gave one."""
    return _CORRELATION.get()


@contextmanager
def acting_as(actor: str) -> Iterator[None]:
    """Let whatever is done inside be told as done by somebody else than whoever opened the store."""
    token = _ACTOR.set(check_id("actor", actor))
    try:
        yield
    finally:
        _ACTOR.reset(token)


def actor_of(kit: Kit) -> str | None:
    """Name whoever acts at this moment."""
    return _ACTOR.get() or kit.actor


class Trail:
    """Makes audit entries for one opening of a store, and brings them there."""

    def __init__(self, kit: Kit, queue: CommitQueue, on_many: Callable[[], None] | None = None) -> None:
        """Begin to tell; `on_many` is called each time so many entries were made that a head is due."""
        self.session_id = kit.session_id
        self._is_harmless = _HARMLESS.fullmatch(kit.session_id) is not None
        self._harmless: set[str | None] = {None}
        self._on_many = on_many
        self._count = 0
        self._kit = kit
        self._queue = queue
        self._mutex = threading.Lock()
        #: Held from taking what was noted to queueing it: whoever closes meanwhile waits for that.
        self._on_the_way = threading.Lock()
        self._noted: list[AuditEntry] = []
        self._timer: threading.Timer | None = None
        self._is_used = False
        self._is_warned = False
        if kit.vault is not None:
            kit.vault.keyring.begin(self.told)

    def told(
        self,
        type: str,
        *,
        session_id: str | None = None,
        workflow_id: str | None = None,
        agent: str | None = None,
        outcome: Outcome = Outcome.SUCCESS,
        correlation_id: str | None = None,
        references: Facts | None = None,
        facts: Facts | None = None,
        payload: Mapping[str, Any] | None = None,
        moment: datetime | None = None,
    ) -> tuple[AuditEntry, ...]:
        """Make the entry that tells of something; nothing where the trail is switched off.

        Args:
            type: what happened; one of AuditType, or the application's own in capitals.
            session_id: the session it belongs to; that of this opening by default.
            correlation_id: what ties it to others, where no `correlate` says so.
            references: facts that come first, numbers and hashes of our own.
            facts: references that may stay for ever. No person's data.
            payload: everything else, as a plain tree; it can be erased.
            moment: when it happened; now by default.

        Secrets are hidden wherever they stand.

        Raises:
            InvalidIdError: the session of this opening is named by what looks like a credential.
        """
        kit, clean = self._kit, self._clean
        if not kit.audit:
            return ()
        if kit.redactor is not None and not self._is_harmless:
            kit.redactor.check_names(session_id=self.session_id)
        actor, correlation_id = _ACTOR.get() or kit.actor, _CORRELATION.get() or correlation_id
        entry = AuditEntry(
            moment or kit.clock.now(),
            clean(type),
            clean(session_id) if session_id else self.session_id,
            clean(workflow_id),
            # Cut to what a line holds: the trail must be no reason that something cannot be recorded.
            clean(agent[:FACT_CHARS_MAX]) if agent else None,
            clean(actor),
            outcome,
            clean(correlation_id[:FACT_CHARS_MAX]) if correlation_id else None,
            {**(references or {}), **self._clean_facts(facts)} if facts else references or {},
        )
        if entry.session_id == self.session_id:
            # One that was ended on purpose need not be ended again.
            self._is_used = type != AuditType.SESSION_CLOSED
        self._count += 1
        if self._count >= kit.head_interval and self._on_many is not None:
            self._count = 0
            self._on_many()
        return (entry if payload is None else self._with_payload(entry, payload),)

    def _clean(self, name: _Name) -> _Name:
        """Hide the secrets of a name; those that have none are remembered, and are the same in each entry."""
        redactor = self._kit.redactor
        if redactor is None or name in self._harmless or not isinstance(name, str):
            return name
        if not _HARMLESS.fullmatch(name):
            hidden = redactor.name(name)
            if hidden != name:
                return hidden
        if len(self._harmless) >= _HARMLESS_MAX:
            self._harmless.clear()
        self._harmless.add(name)
        return name

    def _clean_facts(self, facts: Facts) -> Facts:
        """Hide the secrets of facts; most are words, numbers and hashes that nobody need look at."""
        redactor = self._kit.redactor
        if redactor is None:
            return facts
        return {
            name: fact if not isinstance(fact, str) or _HARMLESS.fullmatch(fact) else redactor.name(fact)
            for name, fact in facts.items()
        }

    def _with_payload(self, entry: AuditEntry, payload: Mapping[str, Any]) -> AuditEntry:
        """Put a payload beside an entry: without secrets, salted, and sealed where the store is."""
        redactor, vault = self._kit.redactor, self._kit.vault
        told = payload if redactor is None else redactor.tree(dict(payload))
        stored = encode_payload(told, secrets.token_bytes(SALT_BYTES))
        if vault is not None:
            stored = vault.seal_payload(stored, entry.session_id, entry.type, entry.workflow_id)
        return replace(entry, stored=stored)

    def record(self, *entries: AuditEntry) -> None:
        """Make entries durable before returning."""
        if entries:
            self._queue.wait(self._submit(entries))

    def commit(
        self,
        entries: tuple[AuditEntry, ...],
        files: dict[str, bytes | None],
        expected_files: dict[str, bytes | None] | None = None,
        erased: tuple[tuple[str, int], ...] = (),
    ) -> None:
        """Change files of the store, or erase payloads, together with the entries that tell of it.

        Raises:
            CheckpointConflictError: a file is not what it was expected to be; nothing was changed.
        """
        commit = Commit(
            NO_WORKFLOW,
            Head(),
            audit=entries,
            files=files,
            expected_files=expected_files or {},
            erased=erased,
        )
        self._queue.wait(self._queue.submit(Ticket(commit, Lineage())))

    def erase(self, entries: tuple[AuditEntry, ...], erased: tuple[tuple[str, int], ...]) -> None:
        """Erase any number of payloads, with as many commits as a store needs for it; the first one tells."""
        try:
            self.commit(entries, {}, erased=erased)
        except StateTooLargeError:
            if len(erased) < 2:
                raise
            middle = len(erased) // 2
            self.erase(entries, erased[:middle])
            self.erase((), erased[middle:])

    def note(self, *entries: AuditEntry) -> None:
        """Take entries along with what is committed next; nobody waits for them.

        Raises:
            StoreReadOnlyError: they can never be written, and the trail is strict.
        """
        if not entries:
            return
        if self._kit.store.read_only:
            self._warn()
            return
        with self._mutex:
            self._noted += entries
            is_full = len(self._noted) >= _NOTED_MAX
            if self._timer is None and self._kit.background and not is_full:
                self._timer = threading.Timer(NOTED_SECONDS, self._ring)
                self._timer.daemon = True
                self._timer.start()
        if is_full:
            self._bring()

    @property
    def has_noted(self) -> bool:
        """Tell whether noted entries wait for a commit to go with."""
        return bool(self._noted)

    def join(self) -> None:
        """Queue what was noted, for whoever leads what the caller queues next."""
        with self._on_the_way:
            entries = self._take()
            if entries:
                self._queue.submit(self._ticket(entries, self._lost), is_urgent=False)

    def refusals(self, workflow_id: str) -> Refusals:
        """Note what is refused inside, and why."""
        return Refusals(self, workflow_id)

    def refused(self, workflow_id: str, refusal: Exception) -> None:
        """Note a refusal, and hide the secrets in what it says."""
        if isinstance(refusal, CheckpointError) and self._kit.redactor is not None:
            self._kit.redactor.conceal(refusal)
        code = refusal.code if isinstance(refusal, CheckpointError) else "failed"
        if isinstance(refusal, InvalidIdError):
            # What cannot be a name is not written down as one.
            workflow_id = NO_WORKFLOW
        entries = self.told(
            AuditType.OPERATION_REFUSED,
            workflow_id=workflow_id or None,
            outcome=Outcome.REFUSED,
            facts={"code": code},
        )
        if not self._kit.store.read_only:
            self.note(*entries)

    def flush(self) -> None:
        """Bring everything that was noted to the store."""
        with self._on_the_way:
            entries = self._take()
        if entries:
            try:
                self._queue.wait(self._submit(entries))
            except CheckpointError:
                self._put_back(entries)
                raise

    def close(self) -> bool:
        """Bring everything noted, and end the session of this opening if it was begun; tell if it was."""
        ending = self.told(AuditType.SESSION_CLOSED) if self._is_used and self._kit.end_session else ()
        with self._on_the_way:
            entries = (*self._take(), *ending)
        with self._mutex:
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if not entries or self._kit.store.read_only:
            return False
        try:
            self._queue.wait(self._submit(entries))
        except StoreClosedError:
            return False
        except CheckpointError as problem:
            _LOG.warning("the end of session %s is not in the trail: %s", self.session_id, problem)
            return False
        return bool(ending)

    def _take(self) -> tuple[AuditEntry, ...]:
        with self._mutex:
            noted, self._noted = self._noted, []
        return tuple(noted)

    def _ring(self) -> None:
        """Bring what is noted by now. It may be little: a commit that takes it along stops no timer.

        Whoever reads and writes in turns would else begin a thread each time.
        """
        with self._mutex:
            self._timer = None
        self._bring()

    def _bring(self) -> None:
        with self._on_the_way:
            entries = self._take()
            if entries:
                try:
                    self._queue.submit(self._ticket(entries, self._lost))
                except StoreClosedError as problem:
                    _LOG.warning("%d audit entries came after the end: %s", len(entries), problem)

    def _submit(self, entries: tuple[AuditEntry, ...]) -> Ticket:
        return self._queue.submit(self._ticket(entries))

    def _ticket(self, entries: tuple[AuditEntry, ...], on_done: Any = None) -> Ticket:
        return Ticket(Commit(NO_WORKFLOW, Head(), audit=entries), Lineage(), None, on_done)

    def _lost(self, ticket: Ticket) -> None:
        if ticket.error is not None:
            _LOG.warning("%d audit entries wait: %s", len(ticket.commit.audit), ticket.error)
            self._put_back(ticket.commit.audit)

    def _put_back(self, entries: tuple[AuditEntry, ...]) -> None:
        """Keep what could not be written for the next commit, as far as memory may be used for it."""
        with self._mutex:
            kept = [*entries, *self._noted]
            self._noted = kept[-_KEPT_MAX:]
        if len(kept) > _KEPT_MAX:
            _LOG.warning("%d audit entries are lost: nothing can be written", len(kept) - _KEPT_MAX)

    def _warn(self) -> None:
        if self._kit.strict_audit:
            raise StoreReadOnlyError(
                "the read cannot be told in the trail, and the trail is strict",
                place=self._kit.store.url,
                hint="Open the store for writing, or set strict_audit to false.",
            )
        if not self._is_warned:
            self._is_warned = True
            _LOG.warning("the store is read-only: reads of it are not in its trail")


class Refusals:
    """Notes what is refused inside of it: every commit is made inside of one."""

    __slots__ = ("_trail", "_workflow_id")

    def __init__(self, trail: Trail, workflow_id: str) -> None:
        self._trail = trail
        self._workflow_id = workflow_id

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, CheckpointError):
            self._trail.refused(self._workflow_id, error)
