"""What a trail tells of and the store beside it no longer holds: `untold` looks the other way.

Every checkpoint and every event is told in the commit that makes it, and a workflow never steps back: pruning
and erasing leave its head where it was. So one that stands below what was told has lost something.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.record import Head
from holdfast.domain.trail import read_fields
from holdfast.domain.trail_check import Fault, Kind
from holdfast.ports import Store

_CHECKPOINTS = frozenset({AuditType.CHECKPOINT_CREATED, AuditType.WORKFLOW_FORKED, AuditType.SCHEMA_MIGRATED})


#: Numbers that take eight bytes; no workflow has more of anything.
_NUMBER_MAX = 2**63


class _Numbers:
    """What was told under each number, in sixteen bytes each. None is given twice while nothing is lost."""

    def __init__(self) -> None:
        self._numbers = array("Q")
        self._told = array("q")
        #: Those that were told after a later one: sessions are integrated one after another.
        self._late: dict[int, int] = {}
        #: The first that was told as two things; 0 if there is none.
        self.twice = 0

    def tell(self, number: int, what: object) -> None:
        if not (0 < number < _NUMBER_MAX and isinstance(what, str)):
            return
        numbers, told = self._numbers, hash(what)
        if not numbers or number > numbers[-1]:
            numbers.append(number)
            self._told.append(told)
            return
        at = bisect_left(numbers, number)
        before = self._told[at] if numbers[at] == number else self._late.setdefault(number, told)
        if before != told and not self.twice:
            self.twice = number


@dataclass(slots=True)
class _Told:
    """The newest checkpoint and the newest event of a workflow that were told, and all their numbers."""

    sequence: int = 0
    event_seq: int = 0
    event_hash: str = ""
    checkpoints: _Numbers = field(default_factory=_Numbers)
    events: _Numbers = field(default_factory=_Numbers)

    def checkpoint(self, sequence: int, checksum: object) -> None:
        self.sequence = max(self.sequence, sequence)
        self.checkpoints.tell(sequence, checksum)

    def pruned(self, last: int) -> None:
        """Forget the checkpoint if it is the newest itself: a listing made anew need not know of that."""
        if last >= self.sequence:
            self.sequence = 0

    def event(self, event_seq: int, event_hash: str) -> None:
        self.events.tell(event_seq, event_hash)
        if event_seq >= self.event_seq:
            self.event_seq, self.event_hash = event_seq, event_hash


class Missing:
    """Hears a trail once, from its start, and keeps a few numbers of each workflow."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}

    def hear(self, fields: Mapping[str, Any]) -> None:
        """Take what an entry tells of a workflow; one that was erased is forgotten."""
        facts = fields.get("data")
        if not facts or "workflow" not in fields or not is_own(fields):
            return
        workflow_id, kind = fields["workflow"], fields["type"]
        if "event_hash" in facts:
            self._of(workflow_id).event(_number(facts, "event_seq"), facts["event_hash"])
        elif kind in _CHECKPOINTS:
            self._of(workflow_id).checkpoint(_number(facts, "cp_seq"), facts.get("checksum"))
        elif kind == AuditType.CHECKPOINTS_PRUNED:
            self._of(workflow_id).pruned(_number(facts, "last"))
        elif erases(fields) or kind == AuditType.STORE_COPIED:
            # What a copy brings is told in the trail that it was copied with.
            self._told.pop(workflow_id, None)

    def _of(self, workflow_id: str) -> _Told:
        told = self._told.get(workflow_id)
        if told is None:
            told = self._told[workflow_id] = _Told()
        return told

    def told_of(self, workflow_id: str) -> _Told | None:
        """Answer what was heard of a workflow since it was last erased; None if that is nothing."""
        return self._told.get(workflow_id)

    def faults(self, store: Store) -> Iterator[Fault]:
        """Compare with where the workflows stand now, which may be further than what was heard."""
        for workflow_id, told in self._told.items():
            # A head that cannot be read is told by whoever reads the workflow.
            with suppress(CheckpointCorruptError):
                problem = _problem(told, store.head(workflow_id))
                if problem:
                    yield Fault(Kind.STORE, problem, f"workflow {workflow_id}")


def is_told(store: Store, workflow_id: str) -> bool:
    """Tell whether the trail knows a workflow that was not erased, whatever else the store holds of it."""
    return _heard(store, workflow_id) is not None


def erased_at(store: Store, workflow_id: str) -> str:
    """Answer when a workflow was erased last, by what the trail tells; empty if it tells of no such thing."""
    last, name = "", plainjson.dumps(workflow_id)
    for line in chain(store.leaves(), store.waiting()):
        if name in line:
            with suppress(CheckpointCorruptError):
                fields = read_fields(line)
                if fields.get("workflow") == workflow_id and is_own(fields) and erases(fields):
                    last = fields["ts"]
    return last


def loss(store: Store, workflow_id: str) -> tuple[str, int]:
    """Say what the trail tells of a workflow and is stored no more, and how many events that is at least."""
    told = _heard(store, workflow_id)
    if told is None:
        return "", 0
    # A head that cannot be read is told by whoever reads the workflow.
    with suppress(CheckpointCorruptError):
        head = store.head(workflow_id)
        problem = _behind(told, head)
        return problem, max(told.event_seq - head.event_seq, 1) if problem else 0
    return "", 0


def _heard(store: Store, workflow_id: str) -> _Told | None:
    heard, name = Missing(), plainjson.dumps(workflow_id)
    for line in chain(store.leaves(), store.waiting()):
        if name in line:
            with suppress(CheckpointCorruptError):
                heard.hear(read_fields(line))
    return heard.told_of(workflow_id)


def is_own(fields: Mapping[str, Any]) -> bool:
    """Tell whether Holdfast itself made an entry; the facts of an application's are its own affair."""
    return bool(fields["id"] == f"AE-{fields['seq']:06d}")


def makes(fields: Mapping[str, Any]) -> bool:
    """Tell whether an entry was made with a checkpoint; whoever reads one later names its checksum, too."""
    return is_own(fields) and fields["type"] in _CHECKPOINTS


def erases(fields: Mapping[str, Any]) -> bool:
    """Tell whether an entry tells that the data of its workflow were erased."""
    # An application's event may have the same type, and so has what tells of a session's record.
    return fields["type"] == AuditType.DATA_ERASED and "scope" in fields.get("data", {})


def _number(facts: Mapping[str, Any], name: str) -> int:
    """Answer a fact that is a number; 0 where there is none."""
    number = facts.get(name)
    return number if isinstance(number, int) else 0


def _behind(told: _Told, head: Head) -> str:
    """Say what is missing at the end of a workflow; empty if nothing is."""
    if head.sequence < told.sequence:
        return f"the trail tells of checkpoint {told.sequence}, which is neither stored nor erased"
    if head.event_seq < told.event_seq:
        return f"the trail tells of event {told.event_seq}, and the events end with {head.event_seq}"
    if head.event_seq == told.event_seq and told.event_hash not in ("", head.event_hash):
        return f"event {told.event_seq} is not the one that the trail tells of"
    return ""


def _problem(told: _Told, head: Head) -> str:
    """Say what is missing; empty if nothing is."""
    if problem := _behind(told, head):
        return problem
    for what, numbers in (("checkpoint", told.checkpoints), ("event", told.events)):
        if numbers.twice:
            return f"{what} {numbers.twice} was told as two different ones: the first was lost"
    return ""
