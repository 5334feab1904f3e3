"""Erasure: what is about a workflow or a person goes for ever, and every proof stays valid.

In an encrypted store a key is destroyed, and not one stored byte changes. Elsewhere the bytes themselves go:
records, events, blobs and the payloads of audit entries. Hashes stay behind: tombstones of checkpoints,
commitments in the trail. Either way answers that a server kept are emptied, and the trail tells that it was
done, when, by whom and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from holdfast.application.audit.missing import is_told
from holdfast.application.forks import with_forks
from holdfast.application.holding import Holds
from holdfast.application.kit import Kit
from holdfast.application.privacy.import_erasure import without_payloads
from holdfast.application.privacy.kept_answers import KeptAnswers
from holdfast.application.privacy.subject_export import SubjectExporter
from holdfast.application.progress_files import ProgressFiles
from holdfast.application.quarantine_files import files_of_workflow
from holdfast.application.recovery_files import RecoveryFiles
from holdfast.application.requests import request_files
from holdfast.application.resolve import no_such_workflow
from holdfast.application.retain import plan_erasure, plan_tombstones
from holdfast.application.secrecy.keyring import Destruction, Keyring
from holdfast.application.session_files import Bare, SessionFiles
from holdfast.application.subjects import Subjects
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer
from holdfast.domain import plainjson
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointError, CheckpointNotFoundError
from holdfast.domain.ids import check_id, check_workflow_id
from holdfast.domain.keyring_file import subject_scope, workflow_scope
from holdfast.domain.trail import decode_entry


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What an erasure did.

    Attributes:
        workflows: whose states and events are gone.
        kept_workflows: also about the subject, but about others too: these were left.
        payloads: payloads of audit entries whose bytes are gone.
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

    def __init__(
        self,
        kit: Kit,
        trail: Trail,
        writer: Writer,
        holds: Holds,
        subjects: Subjects,
        exporter: SubjectExporter,
    ) -> None:
        self._kit = kit
        self._exporter = exporter
        self._trail = trail
        self._writer = writer
        self._holds = holds
        self._subjects = subjects

    def workflow(self, workflow_id: str, *, reason: str) -> ErasureResult:
        """Erase everything a workflow recorded; its name, times and hashes stay. May be repeated.

        One that is lost, and that only the trail still knows, is erased too: that is how a loss is accepted.

        Raises:
            CheckpointNotFoundError: there is no such workflow.
            LegalHoldError: it has to stay; nothing was done.
            CheckpointConflictError: it went on meanwhile; try again.
        """
        check_workflow_id(workflow_id)
        check_id("reason", reason)
        head = self._kit.store.head(workflow_id)
        if not (head.sequence or head.event_seq or is_told(self._kit.store, workflow_id)):
            raise no_such_workflow(workflow_id)
        self._check_holds([workflow_id])
        facts: dict[str, int | str] = {"scope": "workflow", "reason": reason}
        if self._kit.vault is None:
            return self._remove([workflow_id], facts)
        return self._destroy(self._kit.vault.keyring, [workflow_id], facts)

    def subject(self, subject: str, *, reason: str) -> ErasureResult:
        """Erase everything that was declared to be about a person, and everything sealed for them.

        A workflow that is about others too is left, and told: erase it by its name if it shall go.

        Raises:
            CheckpointNotFoundError: nothing is known about such a person.
            LegalHoldError: something has to stay; nothing was done.
            CheckpointConflictError: more was declared about them meanwhile; try again.
        """
        check_id("subject", subject)
        check_id("reason", reason)
        # Read before: a workflow that is declared meanwhile must not be forgotten with the declaration.
        file = self._subjects.file(subject)
        expected = {file: self._kit.store.file(file)}
        known = self._subjects.known(subject)
        alone, shared = self._subjects.divided(known)
        # A key takes what was sealed with it out of shared workflows, too.
        self._check_holds(alone if self._kit.vault is None else [*alone, *shared], subject)
        self._check_sealed(subject)
        facts: dict[str, int | str] = {"scope": "subject", "subject": known.pseudonym, "reason": reason}
        kept = tuple(shared)
        declared: dict[str, bytes | None] = {known.file: None} if known.workflows else {}
        if self._kit.vault is not None:
            keyring = self._kit.vault.keyring
            sealed = keyring.destruction(subject_scope(subject))
            if sealed is None and not declared:
                raise _unknown(known.pseudonym)
            return self._destroy(keyring, alone, facts, [sealed] if sealed else [], declared, kept, expected)
        if not declared:
            raise _unknown(known.pseudonym)
        return self._remove(alone, facts, declared, kept, expected)

    def plan_subject(self, subject: str) -> tuple[list[str], list[str]]:
        """Tell which workflows would go with a person, and which would be left; nothing is done.

        Raises:
            CheckpointNotFoundError: nothing is known about such a person.
        """
        known = self._subjects.known(check_id("subject", subject))
        vault = self._kit.vault
        is_sealed = vault is not None and vault.keyring.destruction(subject_scope(subject)) is not None
        if not known.workflows and not is_sealed:
            raise _unknown(known.pseudonym)
        return self._subjects.divided(known)

    def _remove(
        self,
        workflow_ids: Sequence[str],
        facts: dict[str, int | str],
        declared: dict[str, bytes | None] | None = None,
        kept: tuple[str, ...] = (),
        expected_files: dict[str, bytes | None] | None = None,
    ) -> ErasureResult:
        """Remove the bytes; the declaration goes last, so that what was interrupted can be repeated."""
        freed_bytes = 0
        payloads: list[tuple[str, int]] = []
        for workflow_id in workflow_ids:
            ProgressFiles(self._kit).remove(workflow_id)
            told = self._trail.told(AuditType.DATA_ERASED, workflow_id=workflow_id, facts=facts)
            # First they are no checkpoints any more: who has gone on from one by then makes the rest a
            # conflict, and afterwards nobody does.
            self._writer.remove(workflow_id, partial(plan_tombstones, self._kit, workflow_id))
            removed = self._writer.remove(workflow_id, partial(plan_erasure, self._kit, workflow_id), told)
            freed_bytes += removed.freed_bytes
            payloads += self._payloads(workflow_id)
        imported, count = without_payloads(self._kit.store, workflow_ids)
        count += len(payloads)
        counts: dict[str, int | str] = {"workflows": len(workflow_ids), "payloads": count}
        told = self._trail.told(AuditType.DATA_ERASED, facts={**facts, **counts})
        if payloads:
            self._trail.erase((), tuple(payloads))
        bare = self._without_context(workflow_ids)
        evidence = (name for one in workflow_ids for name in files_of_workflow(self._kit.store, one))
        views = RecoveryFiles(self._kit, self._trail).without(workflow_ids)
        asked = self._requests(workflow_ids)
        KeptAnswers(self._kit, self._trail).empty()
        files = {**(declared or {}), **imported, **bare.files, **dict.fromkeys(evidence), **views, **asked}
        self._trail.commit((*told, *bare.told), files, {**(expected_files or {}), **bare.expected})
        # Journals and free pages must not keep what was erased.
        self._kit.store.settle()
        return ErasureResult(tuple(workflow_ids), kept, count, 0, freed_bytes)

    def _destroy(
        self,
        keyring: Keyring,
        workflow_ids: Sequence[str],
        facts: dict[str, int | str],
        going: Sequence[Destruction] = (),
        declared: dict[str, bytes | None] | None = None,
        kept: tuple[str, ...] = (),
        expected_files: dict[str, bytes | None] | None = None,
    ) -> ErasureResult:
        """Destroy keys, all in one commit, and forget them."""
        found = [keyring.destruction(workflow_scope(workflow_id)) for workflow_id in workflow_ids]
        keys = [*going, *(one for one in found if one is not None)]
        bare = self._without_context(workflow_ids)
        views = RecoveryFiles(self._kit, self._trail).without(workflow_ids)
        asked = self._requests(workflow_ids)
        files: dict[str, bytes | None] = {**(declared or {}), **bare.files, **views, **asked}
        expected: dict[str, bytes | None] = {**(expected_files or {}), **bare.expected}
        for key in keys:
            files |= key.files
            expected |= key.expected_files
        named = workflow_ids[0] if facts["scope"] == "workflow" else None
        key_ids = [key_id for key in keys for key_id in key.key_ids]
        counts: dict[str, int | str] = {"workflows": len(workflow_ids), "keys": len(key_ids)}
        KeptAnswers(self._kit, self._trail).empty()
        told = self._trail.told(AuditType.DATA_ERASED, workflow_id=named, facts={**facts, **counts})
        self._trail.commit((*told, *bare.told), files, expected)
        for key_id in key_ids:
            keyring.forget(key_id)
        for workflow_id in workflow_ids:
            self._writer.forget(workflow_id)
        self._kit.store.settle()
        return ErasureResult(tuple(workflow_ids), kept, 0, len(key_ids))

    def _without_context(self, workflow_ids: Sequence[str]) -> Bare:
        """Make anew the records of sessions that handed such workflows over."""
        return SessionFiles(self._kit, self._trail).without_context(workflow_ids)

    def _requests(self, workflow_ids: Sequence[str]) -> dict[str, bytes | None]:
        """Take away what was asked of such workflows: it is sealed with no key of theirs."""
        return dict.fromkeys(
            name for workflow_id in workflow_ids for name in request_files(self._kit.store, workflow_id)
        )

    def _payloads(self, workflow_id: str) -> Iterator[tuple[str, int]]:
        """Find the payloads that tell of a workflow, in every session."""
        store = self._kit.store
        for session_id in store.sessions():
            for seq, line in enumerate(store.trail(session_id), 1):
                if _tells_of(workflow_id, line):
                    yield session_id, seq

    def _check_sealed(self, subject: str) -> None:
        """Refuse to destroy a person's key while a held workflow has something sealed with it."""
        for workflow_id in self._held():
            if self._exporter.has_sealed(workflow_id, subject):
                with self._trail.refusals(workflow_id):
                    self._holds.check(workflow_id=workflow_id)

    def _held(self) -> list[str]:
        """Name the workflows that a hold covers, by themselves or for a person whom they are about."""
        holds = self._holds.listing()
        people = {hold.subject for hold in holds} - {None}
        about = [known.workflows for known in self._subjects.listing() if known.pseudonym in people]
        named = [hold.workflow_id for hold in holds if hold.workflow_id is not None]
        return [*named, *with_forks(self._kit, chain.from_iterable(about))]

    def _check_holds(self, workflow_ids: Sequence[str], subject: str | None = None) -> None:
        with self._trail.refusals(workflow_ids[0] if workflow_ids else ""):
            self._holds.check(subject=subject)
            for workflow_id in workflow_ids:
                self._holds.check(workflow_id=workflow_id)


def _tells_of(workflow_id: str, line: bytes) -> bool:
    """Tell whether an entry has a payload about a workflow; one that was damaged since, by what it claims.

    A damaged line can never be put right, and must not keep everybody from being erased.
    """
    try:
        entry = decode_entry(line, None)
        return entry.workflow_id == workflow_id and bool(entry.payload)
    except CheckpointError:
        return b'"workflow":' + plainjson.dumps(workflow_id) in line and b'"payload":' in line


def _unknown(pseudonym: str) -> CheckpointNotFoundError:
    return CheckpointNotFoundError("nothing is known about such a subject", place=pseudonym)
