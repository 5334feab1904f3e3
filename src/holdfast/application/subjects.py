"""Data subjects: which workflows are about whom, so that a person can be given, or rid of, everything.

What is about somebody is declared when it begins. The declaration is a small file of the store under a
pseudonym; it is the only place that ties the pseudonym to a name, and it goes when the subject is erased.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from contextlib import suppress
from dataclasses import dataclass

from holdfast.application.forks import with_forks, with_origins
from holdfast.application.kit import Kit
from holdfast.application.trailing import Trail
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointConflictError, CheckpointCorruptError
from holdfast.domain.ids import check_id, check_workflow_id
from holdfast.domain.json_reading import read_json

FOLDER = "keys/subjects/"
SECRET = "keys/pseudonyms"
_PSEUDONYM_CHARS = 32
_SECRET_BYTES = 32
_ATTEMPTS_MAX = 100


@dataclass(frozen=True, slots=True)
class Subject:
    """Somebody, and what is about them."""

    pseudonym: str
    name: str
    workflows: tuple[str, ...]

    @property
    def file(self) -> str:
        return FOLDER + self.pseudonym


class Subjects:
    """Remembers who is spoken of where."""

    def __init__(self, kit: Kit, trail: Trail) -> None:
        self._kit = kit
        self._trail = trail

    def declare(self, workflow_id: str, subject: str) -> str:
        """Say that a workflow is about a person; answer the pseudonym under which the trail names them.

        Declared once, it holds for everything the workflow records, before and after.
        """
        check_workflow_id(workflow_id)
        check_id("subject", subject)
        if self._kit.redactor is not None:
            self._kit.redactor.check_names(subject=subject)
        for _ in range(_ATTEMPTS_MAX):
            known = self.known(subject)
            if workflow_id in known.workflows:
                return known.pseudonym
            try:
                self._add(known, workflow_id)
            except CheckpointConflictError:
                continue
            return known.pseudonym
        raise CheckpointConflictError("others declare the same subject without pause", place=workflow_id)

    def known(self, subject: str) -> Subject:
        """Tell what was declared about a person; nothing where nobody declared anything."""
        if self._kit.store.read_only and not self._has_secret:
            # Nobody was ever declared, and nothing can be made here to look for them by.
            return Subject("", subject, ())
        pseudonym = self.pseudonym(subject)
        data = self._kit.store.file(FOLDER + pseudonym)
        return Subject(pseudonym, subject, ()) if data is None else self._decode(pseudonym, data)

    def file(self, subject: str) -> str:
        """Name the file of what was declared about a person."""
        return FOLDER + self.pseudonym(subject)

    def of(self, workflow_id: str) -> list[Subject]:
        """Tell everybody whom a workflow is about, by itself or by what it was forked from."""
        declared = self.listing()
        family = with_origins(self._kit, workflow_id) if declared else set()
        return [subject for subject in declared if not family.isdisjoint(subject.workflows)]

    def divided(self, known: Subject) -> tuple[list[str], list[str]]:
        """Tell the workflows that are about one person from those that are about others too.

        A workflow that was forked from one about a person is about that person, declared or not.
        """
        others = [subject for subject in self.listing() if subject.pseudonym != known.pseudonym]
        declared = (workflow_id for subject in others for workflow_id in subject.workflows)
        taken = set(with_forks(self._kit, declared))
        mine = with_forks(self._kit, known.workflows)
        alone = [workflow_id for workflow_id in mine if workflow_id not in taken]
        return alone, [workflow_id for workflow_id in mine if workflow_id in taken]

    def listing(self) -> list[Subject]:
        """Tell everybody who was declared."""
        store = self._kit.store
        found = ((name, store.file(name)) for name in store.files(FOLDER))
        return [self._decode(name.removeprefix(FOLDER), data) for name, data in found if data is not None]

    def pseudonym(self, subject: str) -> str:
        """Name a person so that only who has the store's secret can tell who it is."""
        if self._kit.vault is not None:
            return self._kit.vault.keyring.pseudonym(subject)
        secret = self._kit.store.file(SECRET) or self._make_secret()
        return hmac.new(secret, subject.encode(), hashlib.sha256).hexdigest()[:_PSEUDONYM_CHARS]

    def _add(self, known: Subject, workflow_id: str) -> None:
        before = self._encode(known) if known.workflows else None
        grown = Subject(known.pseudonym, known.name, (*known.workflows, workflow_id))
        # First of all: it may make a key, which is told before the declaration and has to be earlier.
        data = self._encode(grown)
        facts = {"subject": known.pseudonym}
        told = self._trail.told(AuditType.SUBJECT_DECLARED, workflow_id=workflow_id, facts=facts)
        self._trail.commit(told, {grown.file: data}, {grown.file: before})

    @property
    def _has_secret(self) -> bool:
        return self._kit.vault is not None or self._kit.store.file(SECRET) is not None

    def _make_secret(self) -> bytes:
        # If somebody else is faster, theirs is the secret.
        with suppress(CheckpointConflictError):
            self._trail.commit((), {SECRET: secrets.token_bytes(_SECRET_BYTES)}, {SECRET: None})
        secret = self._kit.store.file(SECRET)
        assert secret is not None
        return secret

    def _encode(self, subject: Subject) -> bytes:
        """Write a declaration; in an encrypted store it is sealed with the person's own key."""
        fields = {"subject": subject.name, "workflows": list(subject.workflows)}
        data = json.dumps(fields, ensure_ascii=False).encode()
        if self._kit.vault is not None:
            key_id, text = self._kit.vault.seal_personal(subject.name, data)
            data = json.dumps({"key": key_id, "sealed": text}).encode()
        return data + b"\n"

    def _decode(self, pseudonym: str, data: bytes) -> Subject:
        try:
            fields = read_json(data)
            if self._kit.vault is not None:
                opened = self._kit.vault.open_personal(fields["key"], fields["sealed"])
                fields = {"subject": "", "workflows": []} if opened is None else read_json(opened[1])
                if opened is not None and self.pseudonym(opened[0]) != pseudonym:
                    raise ValueError("what was declared about somebody else stands here")
            name, workflows = fields["subject"], fields["workflows"]
            if not isinstance(workflows, list) or not all(isinstance(one, str) for one in (name, *workflows)):
                raise ValueError("what was declared is no list of names")
            return Subject(pseudonym, name, tuple(workflows))
        except (ValueError, TypeError, KeyError):
            raise CheckpointCorruptError(
                "what was declared about a subject cannot be read", place=FOLDER + pseudonym
            ) from None
