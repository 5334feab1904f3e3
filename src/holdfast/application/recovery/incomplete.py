"""Finding what crashed: workflows that did not end, and that nobody works on any more.

Only listings and leases are looked at, no states; of those that may have crashed also the events after the
last checkpoint. A workflow that others hold by a living lease is left alone, however long it was quiet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from holdfast.application.kit import Kit
from holdfast.application.recovery.owners import is_held, process_text
from holdfast.application.resolve import living
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import CheckpointMeta, CheckpointStatus, has_ended
from holdfast.domain.errors import CheckpointError
from holdfast.domain.event import decode_event
from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import Entry, Lease
from holdfast.domain.recovery import RecoveryResult
from holdfast.domain.time import parse_timestamp, timestamp_text
from holdfast.ports import Store

_LOG = logging.getLogger("holdfast")

_UNFINISHED = frozenset({CheckpointStatus.ACTIVE, CheckpointStatus.RECOVERING})
#: Events that say that a workflow ended, where no checkpoint does.
ENDS: Mapping[str, str] = {
    AuditType.WORKFLOW_COMPLETED: "completed",
    AuditType.WORKFLOW_FAILED: "failed",
}

#: Recovers one workflow.
Recover = Callable[[str], RecoveryResult]


class Cause(StrEnum):
    """Why a workflow counts as crashed."""

    #: Whoever had it for itself is gone, and never gave it back.
    OWNER_GONE = "owner_gone"
    #: It was quiet for too long, and nobody has it.
    QUIET = "quiet"


def gone_text(owner: str) -> str:
    """Say that whoever had a workflow is gone."""
    process = process_text(owner)
    return f"its process ({process}) is gone" if process else f"{owner!r} had it and is gone"


def quiet_text(status: str, quiet_seconds: float) -> str:
    """Say that a workflow was quiet for too long."""
    return f"{status}, and quiet for {quiet_seconds:.0f} seconds"


@dataclass(frozen=True, slots=True)
class Incomplete:
    """A workflow that crashed.

    Attributes:
        workflow_id: which.
        checkpoint_id: its newest checkpoint.
        status: how that stands: active, or recovering where a recovery crashed too.
        cause: why it counts as crashed; `reason` says it in words.
        last_activity: when it was last written.
        quiet_seconds: how long ago that was.
        session_id: the session of its newest checkpoint.
        owner: who had it, where that one is gone.
        is_recovered: whether its last event says that the state was recovered: nobody went on since.
    """

    workflow_id: str
    checkpoint_id: CheckpointID
    status: CheckpointStatus
    cause: Cause
    last_activity: datetime
    quiet_seconds: float
    session_id: str | None = None
    owner: str | None = None
    is_recovered: bool = False

    @property
    def sequence(self) -> int:
        """Sequence of its newest checkpoint."""
        return self.checkpoint_id.sequence

    @property
    def reason(self) -> str:
        """Why it counts as crashed, in words."""
        if self.cause is Cause.OWNER_GONE:
            return gone_text(str(self.owner))
        return quiet_text(self.status, self.quiet_seconds)

    def __str__(self) -> str:
        return f"{self.checkpoint_id}: {self.reason}"


@dataclass(frozen=True, slots=True)
class StartUp:
    """What became of one crashed workflow when the store was opened."""

    incomplete: Incomplete
    result: RecoveryResult | None = None
    error: CheckpointError | None = None


def incomplete_workflows(kit: Kit, *, stale_seconds: float | None = None) -> list[Incomplete]:
    """Find the workflows that crashed, the one that was quiet longest first.

    One has crashed if its newest checkpoint is active or recovering, nothing says that it ended, and either
    the owner of its lease is gone, or it has no lease and was quiet for too long.

    Args:
        stale_seconds: how long is too long; as configured by default.
    """
    now = kit.clock.now()
    patience = kit.recovery.stale_seconds if stale_seconds is None else stale_seconds
    found = (_look(kit.store, workflow_id, now, patience) for workflow_id in kit.store.workflows())
    crashed = [one for one in found if one is not None]
    return sorted(crashed, key=lambda one: (one.last_activity, one.workflow_id))


def recover_incomplete(
    kit: Kit, recover: Recover, crashed: Iterable[Incomplete] | None = None
) -> list[StartUp]:
    """Recover what crashed, each for itself: one that cannot be brought back stops no other.

    Args:
        recover: recovers one workflow; of two processes that start at once, one does.
        crashed: what to recover; what is found by default.
    """
    done = []
    for one in incomplete_workflows(kit) if crashed is None else crashed:
        try:
            done.append(StartUp(one, recover(one.workflow_id)))
            _log(done[-1])
        except CheckpointError as problem:
            done.append(StartUp(one, error=problem))
            _LOG.warning("not recovered at start-up: %s (%s)", one, problem)
    return done


def _log(done: StartUp) -> None:
    """Tell how a recovery ended; one that was refused, or whose handler failed, is none."""
    result = done.result
    if result is not None and not result.success:
        why = "; ".join(result.validation_errors or result.warnings)
        _LOG.warning("not recovered at start-up: %s (%s)", done.incomplete, why)
    else:
        _LOG.info("recovered at start-up: %s", done.incomplete)


def start_up(kit: Kit, recover: Recover) -> list[StartUp]:
    """Recover what crashed when a store is opened, where that is configured and the store can be written."""
    if not kit.recovery.auto or kit.store.read_only:
        return []
    has_handlers = bool(kit.app.handlers.list_handlers())
    # Without a handler a second recovery would only say again what the first one did.
    crashed = [one for one in incomplete_workflows(kit) if has_handlers or not one.is_recovered]
    return recover_incomplete(kit, recover, crashed)


def _look(store: Store, workflow_id: str, now: datetime, patience_seconds: float) -> Incomplete | None:
    """Judge one workflow; damage that hides whether it crashed is told, and hides no other."""
    try:
        return _judged(store, workflow_id, now, patience_seconds)
    except CheckpointError as problem:
        _LOG.warning("it cannot be told whether %s crashed: %s", workflow_id, problem)
        return None


def _judged(store: Store, workflow_id: str, now: datetime, patience_seconds: float) -> Incomplete | None:
    newest = next(living(store, workflow_id), None)
    if newest is None or newest.status not in _UNFINISHED or has_ended(newest):
        return None
    lease = store.lease(workflow_id)
    is_gone = lease is not None and not is_held(lease)
    if lease is not None and not is_gone:
        return None
    # The newest checkpoint bounds it from below: most workflows are judged without reading events.
    is_young = _seconds(now, newest.timestamp) < patience_seconds
    if is_young and not is_gone:
        return None
    last, has_end, is_recovered = _last_event(store, workflow_id, newest)
    quiet_seconds = _seconds(now, last)
    if has_end or (not is_gone and quiet_seconds < patience_seconds):
        return None
    crashed = _incomplete(workflow_id, newest, lease if is_gone else None, last, quiet_seconds)
    return replace(crashed, is_recovered=is_recovered)


def _incomplete(
    workflow_id: str, newest: Entry, lost: Lease | None, last: str, quiet_seconds: float
) -> Incomplete:
    meta = CheckpointMeta.from_entry(workflow_id, newest)
    return Incomplete(
        workflow_id,
        meta.id,
        meta.status,
        Cause.QUIET if lost is None else Cause.OWNER_GONE,
        parse_timestamp(last),
        quiet_seconds,
        newest.session,
        None if lost is None else lost.owner,
    )


def _last_event(store: Store, workflow_id: str, newest: Entry) -> tuple[str, bool, bool]:
    """Tell when a workflow was last written, and whether events since say that it ended or was recovered."""
    last, has_end, is_recovered = newest.timestamp, False, False
    if store.head(workflow_id).event_seq <= newest.event_seq:
        return last, has_end, is_recovered
    for line in store.events(workflow_id, after=newest.event_seq):
        event = decode_event(line, None)
        last, has_end = max(last, timestamp_text(event.timestamp)), has_end or event.type in ENDS
        is_recovered = event.type == AuditType.WORKFLOW_RECOVERED
    return last, has_end, is_recovered


def _seconds(now: datetime, then: str) -> float:
    return (now - parse_timestamp(then)).total_seconds()
