"""Erasure: what is about a workflow or a person goes for ever, and every proof stays valid.

In an encrypted store a key is destroyed, and not one stored byte changes. Elsewhere the bytes themselves go:
records, events, blobs and the payloads of audit entries. Hashes stay behind: tombstones of checkpoints,
commitments in the trail. Either way the trail tells that it was done, when, by whom and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.application.holding import Holds
from holdfast.application.kit import Kit
from holdfast.application.retain import plan_erasure
from holdfast.application.subjects import Subject, Subjects
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.domain.ids import check_id, check_workflow_id
from holdfast.domain.trail import decode_entry


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure did.

    Attributes:
        workflows: whose states and events are gone.
        kept_workflows: also about the subject, but about others too: these were left.
        payloads: payloads of audit entries that are gone.
        keys: keys that were destroyed.
        freed_bytes: given back, where bytes went.
    """

    workflows: tuple[str, ...] = ()
    kept_workflows: tuple[str, ...] = ()
    payloads: int = 0
    keys: int = 0
    freed_bytes: int = 0


class Eraser:
    """Carries erasures out."""

    def __init__(self, kit: Kit, trail: Trail, writer: Writer, holds: Holds, subjects: Subjects) -> None:
        self._kit = kit
        self._trail = trail
        self._writer = writer
        self._holds = holds
        self._subjects = subjects

    def workflow(self, workflow_id: str, *, reason: str) -> Erased:
        """Erase everything a workflow recorded; its name, times and hashes stay. May be repeated.

        Raises:
            CheckpointNotFoundError: there is no such workflow.
            LegalHoldError: it has to stay; nothing was done.
        """
        check_workflow_id(workflow_id)
        check_id("reason", reason)
        if not self._kit.store.head(workflow_id).event_seq:
            raise CheckpointNotFoundError("there is no such workflow", place=workflow_id)
        self._check_holds([workflow_id])
        return self._workflow(workflow_id, {"scope": "workflow", "reason": reason})

    def subject(self, subject: str, *, reason: str) -> Erased:
        """Erase everything that was declared to be about a person, and everything sealed for them.

        A workflow that is about others too is left, and told: erase it by its name if it shall go.

        Raises:
            CheckpointNotFoundError: nothing is known about such a person.
            LegalHoldError: something has to stay; nothing was done.
        """
        check_id("subject", subject)
        check_id("reason", reason)
        known = self._subjects.known(subject)
        alone, shared = self._divided(known)
        self._check_holds(alone, subject)
        if not known.workflows:
            raise CheckpointNotFoundError("nothing is known about such a subject", place=known.pseudonym)
        facts: dict[str, int | str] = {"scope": "subject", "subject": known.pseudonym, "reason": reason}
        done = [self._workflow(workflow_id, facts) for workflow_id in alone]
        told = self._trail.told(AuditType.DATA_ERASED, facts={**facts, "workflows": len(done)})
        self._trail.commit(told, {known.file: None})
        return Erased(
            tuple(alone),
            tuple(shared),
            sum(each.payloads for each in done),
            sum(each.keys for each in done),
            sum(each.freed_bytes for each in done),
        )

    def _workflow(self, workflow_id: str, facts: dict[str, int | str]) -> Erased:
        payloads = tuple(self._payloads(workflow_id))
        facts = {**facts, "payloads": len(payloads)}
        told = self._trail.told(AuditType.DATA_ERASED, workflow_id=workflow_id, facts=facts)
        removed = self._writer.remove(workflow_id, lambda: plan_erasure(self._kit, workflow_id), told)
        self._trail.commit((), {}, erased=payloads)
        # Journals and free pages must not keep what was erased.
        self._kit.store.settle()
        return Erased((workflow_id,), payloads=len(payloads), freed_bytes=removed.freed_bytes)

    def _payloads(self, workflow_id: str) -> Iterator[tuple[str, int]]:
        """Find the payloads that tell of a workflow, in every session."""
        store = self._kit.store
        for session_id in store.sessions():
            for entry in map(_decode, store.trail(session_id)):
                if entry.workflow_id == workflow_id and entry.payload:
                    yield session_id, entry.seq

    def _divided(self, known: Subject) -> tuple[list[str], list[str]]:
        """Tell the workflows that are about one person from those that are about others too."""
        others = [subject for subject in self._subjects.listing() if subject.pseudonym != known.pseudonym]
        taken = {workflow_id for subject in others for workflow_id in subject.workflows}
        alone = [workflow_id for workflow_id in known.workflows if workflow_id not in taken]
        return alone, [workflow_id for workflow_id in known.workflows if workflow_id in taken]

    def _check_holds(self, workflow_ids: list[str], subject: str | None = None) -> None:
        for workflow_id in workflow_ids:
            with self._trail.refusals(workflow_id):
                self._holds.check(workflow_id=workflow_id, subject=subject)
        with self._trail.refusals(""):
            self._holds.check(subject=subject)


def _decode(line: bytes) -> AuditEntry:
    return decode_entry(line, None)
