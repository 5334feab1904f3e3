"""What this process tells the trail: entries that ride on commits, and those that follow when they can.

Whatever changes the store is told in the very commit that changes it. Reads and refusals are noted: they do
not wait for the disk, but go with the next commit, a second later, or at the end, whichever comes first.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from holdfast.application.commit_queue import CommitQueue, Lineage, Ticket
from holdfast.application.kit import Kit
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import CheckpointError, StoreClosedError, StoreReadOnlyError
from holdfast.domain.payload import SALT_BYTES, encode_payload
from holdfast.domain.record import NO_WORKFLOW, Commit, Head

NOTED_SECONDS = 1.0
_NOTED_MAX = 256
_LOG = logging.getLogger("holdfast")

Facts = Mapping[str, int | str]


class Trail:
    """Makes audit entries for one opening of a store, and brings them there."""

    def __init__(self, kit: Kit, queue: CommitQueue) -> None:
        self.session_id = kit.session_id
        self._kit = kit
        self._queue = queue
        self._mutex = threading.Lock()
        self._noted: list[AuditEntry] = []
        self._timer: threading.Timer | None = None
        self._is_used = False
        self._is_warned = False

    def told(
        self,
        type: str,
        *,
        session_id: str | None = None,
        workflow_id: str | None = None,
        agent: str | None = None,
        outcome: Outcome = Outcome.SUCCESS,
        correlation_id: str | None = None,
        facts: Facts | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> tuple[AuditEntry, ...]:
        """Make the entry that tells of something; nothing where the trail is switched off.

        Args:
            type: what happened; one of AuditType, or the application's own in capitals.
            session_id: the session it belongs to; that of this opening by default.
            facts: references that may stay for ever. No person's data.
            payload: everything else, as a plain tree; it can be erased.
        """
        if not self._kit.audit:
            return ()
        self._is_used = self._is_used or session_id in (None, self.session_id)
        stored = b"" if payload is None else encode_payload(payload, secrets.token_bytes(SALT_BYTES))
        entry = AuditEntry(
            self._kit.clock.now(),
            type,
            session_id or self.session_id,
            workflow_id,
            agent,
            self._kit.actor,
            outcome,
            correlation_id,
            facts or {},
            stored=stored,
        )
        return (entry,)

    def record(self, *entries: AuditEntry) -> None:
        """Make entries durable before returning."""
        if entries:
            self._queue.wait(self._submit(entries))

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
                self._timer = threading.Timer(NOTED_SECONDS, self._bring)
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
        entries = self._take()
        if entries:
            self._queue.submit(self._ticket(entries, self._lost), is_urgent=False)

    @contextmanager
    def refusals(self, workflow_id: str) -> Iterator[None]:
        """Note that something was refused, and why."""
        try:
            yield
        except CheckpointError as refusal:
            self.refused(workflow_id, refusal)
            raise

    def refused(self, workflow_id: str, refusal: Exception) -> None:
        """Note a refusal."""
        code = refusal.code if isinstance(refusal, CheckpointError) else "failed"
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
        entries = self._take()
        if entries:
            self._queue.wait(self._submit(entries))

    def close(self) -> None:
        """Bring everything noted, and close the session of this opening if it was begun."""
        ending = self.told(AuditType.SESSION_CLOSED) if self._is_used else ()
        entries = (*self._take(), *ending)
        if not entries or self._kit.store.read_only:
            return
        try:
            self._queue.wait(self._submit(entries))
        except StoreClosedError:
            return
        except CheckpointError as problem:
            _LOG.warning("the end of session %s is not in the trail: %s", self.session_id, problem)

    def _take(self) -> tuple[AuditEntry, ...]:
        with self._mutex:
            noted, self._noted = self._noted, []
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        return tuple(noted)

    def _bring(self) -> None:
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
            _LOG.warning("%d audit entries could not be written: %s", len(ticket.commit.audit), ticket.error)

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
