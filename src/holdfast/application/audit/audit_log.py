"""`AuditLog`: writing, finding and verifying audit entries, over one store."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from holdfast.application.audit.audit_event import AuditEvent, open_event
from holdfast.application.audit.audit_export import ExportResult, write_export
from holdfast.application.audit.audit_query import AuditQuery
from holdfast.application.audit.log_keeping import LogKeeper
from holdfast.application.audit.log_source import OnProgress, StoreSource, silently
from holdfast.application.audit.payload_pruning import PrunedPayloads, prune_payloads
from holdfast.application.audit.untold import untold
from holdfast.application.kit import Kit
from holdfast.application.observing import VERIFY, found_invalid, spanned
from holdfast.application.secrecy.sealing import read_payload
from holdfast.application.trailing import Facts, Trail
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import CheckpointError, CheckpointWriteError, ConfigError
from holdfast.domain.ids import check_session_id, check_workflow_id
from holdfast.domain.log_check import LogReport, Trust, verify_log
from holdfast.domain.note import VerifierKey
from holdfast.domain.telemetry import FoundBy
from holdfast.domain.trail import claimed_id, decode_entry
from holdfast.domain.trail_check import SessionReport, verify_session
from holdfast.domain.treehead import TreeHead, open_head

_LOG = logging.getLogger("holdfast")


class AuditLog:
    """The trail of a store, for those who write to it and for those who check it."""

    def __init__(self, kit: Kit, trail: Trail, keeper: LogKeeper) -> None:
        self._kit = kit
        self._store = kit.store
        self._trail = trail
        self.keeper = keeper

    @property
    def is_on(self) -> bool:
        """Whether anything is told in the trail."""
        return self._kit.audit

    def log_event(
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
    ) -> str:
        """Write an entry of the application's own, durable when this returns; answer its id.

        Args:
            type: what happened, in capitals: one of AuditType, or the application's own.
            session_id: the session it belongs to; that of this opening by default.
            facts: references that may stay for ever. No person's data.
            payload: everything else, as a plain tree; it can be erased.

        Raises:
            ConfigError: the trail is switched off.
            InvalidIdError: a name looks like a credential.
            InvalidStateError, UnstorableValueError: this cannot be an entry.
            CheckpointWriteError: it could not be made durable.
        """
        if self._kit.redactor is not None:
            names = {"session_id": session_id, "workflow_id": workflow_id, "agent_id": agent}
            self._kit.redactor.check_names(type=type, correlation_id=correlation_id, **names)
            # The application's own facts may have telling names; those of Holdfast have none.
            facts = None if facts is None else self._kit.redactor.tree(dict(facts))
        entries = self._trail.told(
            type,
            session_id=None if session_id is None else check_session_id(session_id),
            workflow_id=workflow_id,
            agent=agent,
            outcome=outcome,
            correlation_id=correlation_id,
            facts=facts,
            payload=payload,
        )
        if not entries:
            raise ConfigError("the trail is switched off", hint="Set `audit` to true.")
        entry = replace(entries[0], id=f"AE-{self._kit.ids.new()}")
        self._trail.record(entry)
        return entry.id

    def note_event(
        self,
        type: AuditType,
        *,
        workflow_id: str | None = None,
        outcome: Outcome = Outcome.SUCCESS,
        facts: Facts | None = None,
    ) -> None:
        """Tell that something was looked at or refused; it goes with the next commit, and nobody waits.

        Raises:
            InvalidIdError: the workflow is none that could be there.
            StoreReadOnlyError: it can never be written, and the trail is strict.
        """
        # One entry that cannot be written would take others with it.
        if workflow_id is not None:
            check_workflow_id(workflow_id)
        self._trail.note(*self._trail.told(type, workflow_id=workflow_id, outcome=outcome, facts=facts))

    def query_events(
        self,
        session_id: str | None = None,
        event_types: Sequence[str] = (),
        after: datetime | None = None,
        before: datetime | None = None,
        agent: str | None = None,
        workflow: str | None = None,
        actor: str | None = None,
        outcome: str | None = None,
        limit: int | None = None,
        *,
        newest: bool = False,
    ) -> list[AuditEvent]:
        """Find entries, in the order of the log, payloads opened.

        Args:
            session_id: of this session only; else of all.
            event_types: of one of these types.
            after: made later than that moment.
            before: made earlier than that moment.
            agent: of exactly this agent.
            workflow: of exactly this workflow.
            actor: by exactly this actor.
            outcome: with exactly this outcome.
            limit: at most so many, the first ones.
            newest: the last ones instead.

        Raises:
            InvalidIdError: the session or the workflow is none that could be there.
            ChecksumMismatchError: an entry or a payload is not what was committed.
        """
        # What is asked for is told, and what cannot be a name could never be written.
        if session_id is not None:
            check_session_id(session_id)
        if workflow is not None:
            check_workflow_id(workflow)
        query = AuditQuery(
            session_id, tuple(map(str, event_types)), after, before, agent, workflow, actor, outcome
        )
        found = self.find(query)
        if limit is not None:
            found = iter(deque(found, limit)) if newest else islice(found, limit)
        events = [open_event(self._kit, line) for line in found]
        facts: dict[str, int | str] = {"entries": len(events)}
        if session_id is not None:
            facts["session"] = session_id
        self._trail.note(*self._trail.told(AuditType.TRAIL_READ, workflow_id=workflow, facts=facts))
        return events

    def find(self, query: AuditQuery) -> Iterator[bytes]:
        """Stream the lines of entries, without their payloads, and without telling of it."""
        with self._if_possible():
            self._trail.flush()
        lines = self._lines() if query.session_id is None else self._store.trail(query.session_id)
        for line in query.candidates(lines):
            if query.matches(decode_entry(line, None)):
                yield line

    def prune_payloads(self, older_than_days: int, *, dry_run: bool = False) -> PrunedPayloads:
        """Remove the payloads of old entries; the entries stay, and every proof.

        Raises:
            ConfigError: they have to be kept for longer.
        """
        return prune_payloads(self._kit, self._trail, older_than_days, dry_run=dry_run)

    def verify_chain_integrity(self, session_id: str) -> tuple[bool, str | None]:
        """Check the chain of one session and its payloads: whether all is right, and the first that is not.

        A chain alone cannot show that its end was cut off: `verify` can.
        """
        check_session_id(session_id)
        with self._if_possible():
            self._trail.flush()
        report = verify_session(self._store.trail(session_id), session_id, self._store.payload)
        self._tell_verified(report, session=session_id)
        fault = report.first_fault
        if fault is None:
            return True, None
        line = next(islice(self._store.trail(session_id), fault.index, None), b"")
        return False, claimed_id(line) or f"line {(fault.index or 0) + 1}"

    def trust(
        self,
        vkeys: Sequence[VerifierKey] = (),
        pins: Sequence[TreeHead] = (),
        witness_keys: Sequence[VerifierKey] = (),
        quorum: int = 1,
    ) -> Trust:
        """Gather what a verification may believe.

        Without `vkeys` that is the key kept here, outside the store; failing that the keys which the store
        itself names: then whoever could rewrite the store could have signed it, too.
        """
        if self._kit.signing is None:
            if vkeys or witness_keys:
                self.keeper.verify_signature()
            return Trust(lambda key, message, signature: False, pins=tuple(pins))
        keys = tuple(vkeys)
        if not keys:
            own = self.keeper.own_key()
            keys = (own,) if own else self.keeper.keys()
        return Trust(self.keeper.verify_signature(), keys, tuple(pins), tuple(witness_keys), quorum)

    def _remembered(self) -> TreeHead | None:
        """Read the last head that the key kept here signed; None where there is none that can be believed."""
        # Whoever signs, or asks for the key, is told what is wrong with it.
        with suppress(CheckpointError):
            key, signing = self.keeper.own_key(), self._kit.signing
            note = signing.remembered(key.name) if key and signing else None
            return open_head(note, [key], signing.verify)[0] if note and key and signing else None
        return None

    def verify(
        self, trust: Trust | None = None, *, payloads: bool = False, on_progress: OnProgress = silently
    ) -> LogReport:
        """Verify the whole log: every entry once, chains, tree, tiles and heads.

        The last head that the key here signed is compared, too: nobody puts that back with the store.

        Args:
            trust: what is known from elsewhere; see `trust`.
            payloads: read the payloads and compare them, too.
            on_progress: told how far it is, now and then.
        """
        with self._if_possible():
            self._trail.flush()
        with spanned(self._kit, VERIFY, {}):
            known = replace(trust or self.trust(), remembered=self._remembered())
            source = StoreSource(self._store, self.keeper, on_progress).open(payloads=payloads)
            report = verify_log(source, known)
        report = replace(report, untold=tuple(untold(self._store)))
        self._tell_verified(report, level=report.level.label, size=report.head.size)
        return report

    def export(
        self, folder: str | Path, session_id: str | None = None, *, include_payloads: bool = True
    ) -> ExportResult:
        """Write the log, or one session of it, into a new folder, for whoever verifies it elsewhere.

        That is told first, and a head is signed where there is a key, so that the export covers all of it.

        Args:
            folder: it must be empty, or not there.
            session_id: of this session only.
            include_payloads: payloads, too; without them everything can be verified as well.

        Raises:
            ConfigError: the folder is not empty.
            CheckpointNotFoundError: there is no such session.
            CheckpointWriteError: the folder cannot be written to.
        """
        facts: dict[str, int | str] = {"payloads": include_payloads}
        if session_id is not None:
            facts["session"] = session_id
        entries = self._trail.told(AuditType.TRAIL_EXPORTED, facts=facts)
        if self._store.read_only:
            self._trail.note(*entries)
        else:
            self._trail.flush()
            self._trail.record(*entries)
            self.keeper.anchor()
        return write_export(self._kit, folder, session_id, include_payloads=include_payloads)

    def export_report(self, session_id: str, format: str) -> bytes:
        """Write what a session's trail tells for people and programs: as `jsonl`, `csv` or `html`.

        Raises:
            ConfigError: there is no such format.
            CheckpointNotFoundError: there is no such session.
        """
        # Nobody who only writes entries waits for pages and tables.
        from holdfast.application.audit.reporting import Reports

        with self._if_possible():
            self._trail.flush()
        trust = self.trust()
        report = verify_log(StoreSource(self._store, self.keeper).open(), trust) if format == "html" else None
        pieces = Reports(self._kit, self.keeper, trust, partial(read_payload, self._kit.vault))
        made = b"".join(pieces.write(format, session_id, report))
        facts: dict[str, int | str] = {"session": session_id, "format": format}
        self._trail.note(*self._trail.told(AuditType.TRAIL_EXPORTED, facts=facts))
        return made

    def set_register(self, said: Mapping[str, Any]) -> None:
        """Keep what the owner says about the processing of personal data; `processing_register` has its form.

        Raises:
            ConfigError: it has another.
        """
        from holdfast.application.audit.processing_register import write_annotations

        write_annotations(self._store, self._trail, said)

    def _lines(self) -> Iterator[bytes]:
        yield from self._store.leaves()
        yield from self._store.waiting()

    def _tell_verified(self, report: LogReport | SessionReport, **facts: int | str) -> None:
        """Note a verification; that something is wrong is on the disk before this returns."""
        outcome = Outcome.FAILURE if report.fault_count else Outcome.SUCCESS
        found_invalid(self._kit, FoundBy.TRAIL, is_so=report.fault_count > 0)
        told = {**facts, "entries": report.entries, "faults": report.fault_count}
        self._trail.note(*self._trail.told(AuditType.TRAIL_VERIFIED, outcome=outcome, facts=told))
        fault = report.first_fault
        if fault is not None and not self._store.read_only:
            place = {"kind": str(fault.kind), "place": fault.place[:512]}
            told_of = self._trail.told(AuditType.INTEGRITY_FAILED, outcome=Outcome.FAILURE, facts=place)
            with self._if_possible():
                self._trail.record(*told_of)

    @contextmanager
    def _if_possible(self) -> Iterator[None]:
        """Let a look at the trail go on where it cannot be told, on a full disk say; unless strict."""
        try:
            yield
        except CheckpointWriteError as problem:
            if self._kit.strict_audit:
                raise
            _LOG.warning("the trail is looked at, and that cannot be written into it: %s", problem)
