"""Counting what the trail tells as it grows, so that each entry is read once.

Counted is what happens from the first look on, as a process counts from its start on: a log may be long.
Only for how it stands, when it was verified say, some of what is older is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import (
    CheckpointRecoveryError,
    EventReplayFailedError,
    NoValidCheckpointError,
    StateReconstructionError,
)
from holdfast.domain.json_reading import read_object
from holdfast.domain.telemetry import RecoveryOutcome
from holdfast.ports import Store

#: So many entries before the end are read at the beginning, and so many more each time at most.
TAIL = 10_000
LINES_MAX = 50_000

_CHECKPOINTS = frozenset({AuditType.CHECKPOINT_CREATED, AuditType.WORKFLOW_FORKED, AuditType.SCHEMA_MIGRATED})
_COUNTED = (
    *_CHECKPOINTS,
    AuditType.WORKFLOW_RECOVERED,
    AuditType.OPERATION_REFUSED,
    AuditType.TRAIL_VERIFIED,
    AuditType.INTEGRITY_FAILED,
)
#: Refusals that say that a workflow could not be brought back.
_NOT_RECOVERED = frozenset(
    {
        NoValidCheckpointError.code,
        CheckpointRecoveryError.code,
        EventReplayFailedError.code,
        StateReconstructionError.code,
    }
)
#: Nothing else is read as JSON: most entries are of other types.
_CANDIDATE = re.compile(rb'"type":"(?:%s)"' % b"|".join(kind.encode() for kind in _COUNTED))


@dataclass(slots=True)
class TrailNumbers:
    """What some part of a trail tells.

    Attributes:
        checkpoints: how many were made.
        recoveries: by outcome: ok, fallback and failed; who was refused is not told as a recovery.
        last_checkpoint_at: when the newest one was made.
        verified_at: when the whole log was last verified.
        is_ok: whether nothing was wrong then, and nothing since; None: nobody has looked.
    """

    checkpoints: int = 0
    recoveries: Counter[RecoveryOutcome] = field(default_factory=Counter)
    last_checkpoint_at: float | None = None
    verified_at: float | None = None
    is_ok: bool | None = None

    def take(self, lines: Iterable[bytes]) -> int:
        """Count lines; answer how many there were."""
        count = 0
        for line in lines:
            count += 1
            if _CANDIDATE.search(line):
                self._take(line)
        return count

    def _take(self, line: bytes) -> None:
        try:
            told = read_object(line)
            at = datetime.fromisoformat(told["ts"]).timestamp()
            kind, outcome, facts = told["type"], told["outcome"], told.get("data", {})
        except (ValueError, TypeError, KeyError):
            # A damaged line is for a verification to find, not for whoever counts.
            return
        if kind in _CHECKPOINTS:
            self.checkpoints += 1
            self.last_checkpoint_at = max(at, self.last_checkpoint_at or at)
        elif (recovered := recovery_outcome(kind, outcome, facts)) is not None:
            self.recoveries[recovered] += 1
        elif kind == AuditType.INTEGRITY_FAILED:
            self.is_ok = False
        elif kind == AuditType.TRAIL_VERIFIED:
            self._verified(at, facts, is_ok=outcome == Outcome.SUCCESS)

    def _verified(self, at: float, facts: dict[str, Any], *, is_ok: bool) -> None:
        """Take down a verification; one of a single session that is right says nothing about the others."""
        if "session" not in facts:
            self.verified_at, self.is_ok = at, is_ok
        elif not is_ok:
            self.is_ok = False

    def since(self, before: TrailNumbers) -> TrailNumbers:
        """Answer the same with the counts of before taken off."""
        return TrailNumbers(
            self.checkpoints - before.checkpoints,
            self.recoveries - before.recoveries,
            self.last_checkpoint_at,
            self.verified_at,
            self.is_ok,
        )

    def joined(self, later: TrailNumbers) -> TrailNumbers:
        """Answer what both tell together."""
        made_at = [at for at in (self.last_checkpoint_at, later.last_checkpoint_at) if at is not None]
        return TrailNumbers(
            self.checkpoints + later.checkpoints,
            self.recoveries + later.recoveries,
            max(made_at, default=None),
            later.verified_at or self.verified_at,
            self.is_ok if later.is_ok is None else later.is_ok,
        )


def recovery_outcome(kind: str, outcome: str, facts: Mapping[str, Any]) -> RecoveryOutcome | None:
    """Tell how a recovery ended that an entry tells of; None if it tells of none."""
    if kind == AuditType.OPERATION_REFUSED:
        return RecoveryOutcome.FAILED if facts.get("code") in _NOT_RECOVERED else None
    if kind != AuditType.WORKFLOW_RECOVERED:
        return None
    if outcome != Outcome.SUCCESS:
        return RecoveryOutcome.FAILED
    return RecoveryOutcome.FALLBACK if facts.get("passed_over") else RecoveryOutcome.OK


class TrailCount:
    """Follows the log of one store. For one thread at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._placed = TrailNumbers()
        #: Index in the tree of the next entry to read; None before the first look.
        self._next: int | None = None
        self._before: TrailNumbers | None = None

    def advance(self, entries: int) -> TrailNumbers:
        """Read what is new, some of it if that is much; answer what was counted since the first look.

        Args:
            entries: how many entries the log has.
        """
        waiting = TrailNumbers()
        # Those have no place yet, so they are counted anew each time until they have one.
        count = waiting.take(islice(self._store.waiting(), LINES_MAX))
        if self._next is None:
            self._next = max(entries - count - TAIL, 0)
        self._next += self._placed.take(islice(self._store.leaves(after=self._next), LINES_MAX))
        known = self._placed.joined(waiting)
        if self._before is None:
            self._before = known
        return known.since(self._before)
