"""Legal holds: while one stands, nothing that it covers is pruned, deleted or erased, and who tries is told.

A hold is a small file of the store. It is looked for when a removal begins: one that is placed while a
removal is under way covers what comes after.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from holdfast.application.kit import Kit
from holdfast.application.subjects import Subjects
from holdfast.application.trailing import Trail, actor_of
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError, LegalHoldError
from holdfast.domain.ids import check_id, check_workflow_id
from holdfast.domain.json_reading import read_object
from holdfast.domain.time import timestamp_text
from holdfast.ports import Store

FOLDER = "holds/"
_ID_CHARS = 8


@dataclass(frozen=True, slots=True)
class Hold:
    """What must stay, and why."""

    id: str
    #: One is named, a person by the pseudonym; neither: the whole store.
    workflow_id: str | None
    subject: str | None
    reason: str
    placed_by: str | None
    placed_at: str

    @property
    def covers(self) -> str:
        """What must stay, for people."""
        return self.workflow_id or (f"subject {self.subject}" if self.subject else "the whole store")

    def __str__(self) -> str:
        return f"{self.id} on {self.covers}"


class Holds:
    """Places, releases and minds holds."""

    def __init__(self, kit: Kit, trail: Trail, subjects: Subjects) -> None:
        self._kit = kit
        self._trail = trail
        self._subjects = subjects

    def place(self, *, workflow_id: str | None = None, subject: str | None = None, reason: str) -> Hold:
        """Keep a workflow, what is about a subject, or everything, until the hold is released.

        Raises:
            InvalidIdError: what is to be kept is no id, or no reason was given.
        """
        if workflow_id is not None:
            check_workflow_id(workflow_id)
        if subject is not None:
            subject = self._subjects.pseudonym(check_id("subject", subject))
        check_id("reason", reason)
        if self._kit.redactor is not None:
            self._kit.redactor.check_names(workflow_id=workflow_id)
            reason = self._kit.redactor.text(reason)
        moment = timestamp_text(self._kit.clock.now())
        name = self._kit.ids.new().replace("-", "")[-_ID_CHARS:]
        hold = Hold(name, workflow_id, subject, reason, actor_of(self._kit), moment)
        told = self._trail.told(AuditType.HOLD_PLACED, workflow_id=workflow_id, facts=_facts(hold))
        self._trail.commit(told, {FOLDER + hold.id: _encode(hold)}, {FOLDER + hold.id: None})
        return hold

    def release(self, hold_id: str, *, reason: str) -> Hold:
        """Let what a hold covers be removed again, unless another covers it.

        Raises:
            CheckpointNotFoundError: there is no such hold.
        """
        check_id("reason", reason)
        name = FOLDER + hold_id
        data = self._kit.store.file(name) if name in self._kit.store.files(FOLDER) else None
        if data is None:
            raise CheckpointNotFoundError(
                "there is no such hold", place=hold_id, hint="See `holdfast hold list`."
            )
        try:
            hold = _decode(name, data)
        except CheckpointCorruptError:
            # What it covered nobody can tell any more; that it stood, and was released, stays in the trail.
            hold = Hold(hold_id, None, None, "unreadable", None, "")
        facts = {**_facts(hold), "reason": reason}
        told = self._trail.told(AuditType.HOLD_RELEASED, workflow_id=hold.workflow_id, facts=facts)
        self._trail.commit(told, {name: None}, {name: data})
        return hold

    def listing(self) -> list[Hold]:
        """Tell the holds that stand, the oldest first."""
        return standing(self._kit.store)

    def check(self, *, workflow_id: str | None = None, subject: str | None = None) -> None:
        """Refuse a removal that a hold stands against.

        Raises:
            LegalHoldError: there is one; says which.
        """
        holds = self.listing()
        if holds and subject is not None:
            subject = self._subjects.pseudonym(subject)
        people = {subject} if subject is not None else set()
        if workflow_id is not None and any(hold.subject for hold in holds):
            people.update(known.pseudonym for known in self._subjects.of(workflow_id))
        for hold in holds:
            covers_all = hold.workflow_id is None and hold.subject is None
            is_named = hold.subject in people or (workflow_id is not None and hold.workflow_id == workflow_id)
            if covers_all or is_named:
                raise LegalHoldError(
                    f"a legal hold stands against it: {hold.reason}",
                    place=str(hold),
                    hint=f"Once it may go: `holdfast hold release {hold.id} --reason ...`.",
                )

    def stands_against(self, workflow_id: str) -> bool:
        """Tell whether a workflow is held."""
        try:
            self.check(workflow_id=workflow_id)
        except LegalHoldError:
            return True
        return False


def standing(store: Store) -> list[Hold]:
    """Tell the holds that stand in a store, the oldest first."""
    found = ((name, store.file(name)) for name in store.files(FOLDER))
    holds = [_decode(name, data) for name, data in found if data is not None]
    return sorted(holds, key=lambda hold: (hold.placed_at, hold.id))


def _is_readable(hold: Hold) -> bool:
    texts, names = (hold.id, hold.reason, hold.placed_at), (hold.workflow_id, hold.subject, hold.placed_by)
    return all(isinstance(text, str) for text in (*texts, *filter(lambda name: name is not None, names)))


def _facts(hold: Hold) -> dict[str, int | str]:
    """Name the hold and its reason."""
    scope = "workflow" if hold.workflow_id else "subject" if hold.subject else "store"
    return {"hold": hold.id, "scope": scope, "reason": hold.reason}


def _encode(hold: Hold) -> bytes:
    return json.dumps(asdict(hold), ensure_ascii=False).encode() + b"\n"


def _decode(name: str, data: bytes) -> Hold:
    try:
        hold = Hold(**read_object(data))
        if not _is_readable(hold):
            raise ValueError("what it says is no text")
        return hold
    except (ValueError, TypeError):
        # What cannot be read still stands: nothing may go because a hold was damaged.
        raise CheckpointCorruptError(
            "a legal hold cannot be read, so nothing may be removed",
            place=name,
            hint="Put the file right, or release it once you know what it covered.",
        ) from None
