"""Recovery: from whatever is left of a workflow to a state that work can go on from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.application.commands import AppendEvent, CheckpointOptions
from holdfast.application.commit_queue import Ticket
from holdfast.application.kit import Kit
from holdfast.application.loading import record_fields
from holdfast.application.reading import Reader
from holdfast.application.recovery.quarantining import Quarantine
from holdfast.application.recovery.resuming import Resumption
from holdfast.application.recovery.searching import Search, Way, nothing_valid
from holdfast.application.recovery.stopwatch import Stopwatch
from holdfast.application.resolve import known_head, living, resolve
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointReadError,
    CheckpointSchemaError,
    InvalidStateError,
    NoValidCheckpointError,
    StoreDamageWarning,
)
from holdfast.domain.event import Event
from holdfast.domain.ids import CheckpointID, check_workflow_id
from holdfast.domain.recovery import OnNoValid, RecoveryMode, RecoveryResult
from holdfast.domain.recovery_plan import RecoveryPlan
from holdfast.domain.replay import Replayed, SkippedEvent, replay
from holdfast.domain.state import WorkflowState

RECOVERED_EVENT = "WORKFLOW_RECOVERED"
#: Records a state as a checkpoint and waits until it is durable.
Save = Callable[[str, WorkflowState, CheckpointOptions], CheckpointID]
#: So many of anything are named in an event or a warning; the rest is counted.
_NAMED_MAX = 20
_CHECK_EVERY = 1000


@dataclass(slots=True)
class _Account:
    """What has been done so far, and what there is to say about it."""

    workflow_id: str
    mode: RecoveryMode
    watch: Stopwatch
    warnings: list[str] = field(default_factory=list)
    quarantined: list[str] = field(default_factory=list)
    #: How many events were read, and which of them hold values of types that are not known here.
    events: int = 0
    unreadable: list[SkippedEvent] = field(default_factory=list)
    #: How many events could not be read at all.
    lost: int = 0
    #: Why somebody asked for it.
    reason: str | None = None
    #: What the recovered state was recorded as.
    made: CheckpointID | None = None


class Recovery:
    """Recovers workflows, and tells beforehand what that would do."""

    def __init__(
        self,
        kit: Kit,
        trail: Trail,
        writer: Writer,
        reader: Reader,
        quarantine: Quarantine,
        resumption: Resumption,
        wait: Callable[[Ticket], object],
        save: Save,
    ) -> None:
        self._kit = kit
        self._trail = trail
        self._writer = writer
        self._reader = reader
        self._quarantine = quarantine
        self._resumption = resumption
        self._wait = wait
        self._save = save
        self._search = Search(kit, reader)

    def recover_workflow(
        self,
        workflow_id: str,
        mode: RecoveryMode | str,
        target_sequence: int | None,
        reason: str | None = None,
        checkpoint: bool | None = None,
    ) -> RecoveryResult:
        """Bring a workflow back; see `CheckpointService.recover_workflow`."""
        account = self._begin(workflow_id, mode, target_sequence)
        account.reason = reason
        with self._trail.refusals(workflow_id), self._alone(workflow_id) as notes:
            account.warnings += notes
            with account.watch.step("find"):
                way = self._search.way(workflow_id, account.mode, target_sequence)
            refusals = way.refusals(account.mode)
            if refusals:
                return self._result(account, way, Replayed({}), None, refusals)
            with account.watch.step("set aside"):
                self._set_aside(account, way)
            with account.watch.step("replay"):
                replayed, state = self._rebuilt(account, way)
            _warn(account, way, replayed)
            with account.watch.step("record"):
                self._record(account, way, replayed)
                if _is_saved(account, way, checkpoint) and not self._kit.store.read_only:
                    account.made = self._saved(way, state)
            return self._result(account, way, replayed, state)

    def resume_workflow(
        self,
        workflow_id: str,
        mode: RecoveryMode | str,
        target_sequence: int | None,
        reason: str | None = None,
        handler: str | None = None,
        *,
        skip_validation: bool = False,
    ) -> RecoveryResult:
        """Bring a workflow back and let a handler go on with it, under one claim."""
        with self._resumption.claims.alone(workflow_id):
            found = self.recover_workflow(workflow_id, mode, target_sequence, reason, checkpoint=False)
            if not found.success or found.state is None:
                return found
            if found.checkpoint_used is None:
                said = "nothing was resumed: there is no checkpoint that a handler could go on from"
                return replace(found, warnings=(*found.warnings, said))
            point = resolve(self._kit.store, found.checkpoint_used)
            done = self._resumption.resume(
                point, found.state, handler=handler, skip_validation=skip_validation
            )
        return replace(
            found,
            success=done.success,
            warnings=(*found.warnings, *done.warnings),
            steps=(*found.steps, *done.steps),
            recovery_time_ms=found.recovery_time_ms + done.recovery_time_ms,
            handler=done.handler,
            resumed_workflow_id=done.resumed_workflow_id,
            recovered_checkpoint=done.recovered_checkpoint,
            validation_errors=done.validation_errors,
        )

    def resume_crashed(self, workflow_id: str) -> RecoveryResult:
        """Resume a workflow whose process died: where its last unfinished agent began, else at the end.

        At the end the events since are in the state; earlier they belong to work that is done again.
        """
        point = self._resumption.resume_point(workflow_id)
        newest = next(living(self._kit.store, workflow_id), point.entry)
        if point.entry.sequence == newest.sequence:
            return self.resume_workflow(workflow_id, RecoveryMode.LATEST, None)
        return self._resumption.recover_from_checkpoint(point.id)

    def plan(self, workflow_id: str, mode: RecoveryMode | str, target_sequence: int | None) -> RecoveryPlan:
        """Tell what a recovery would do; nothing is changed."""
        account = self._begin(workflow_id, mode, target_sequence)
        way = self._search.way(workflow_id, account.mode, target_sequence)
        refusals = list(way.refusals(account.mode))
        replayed = Replayed({})
        try:
            replayed, _ = self._rebuilt(account, way)
        except NoValidCheckpointError as problem:
            refusals.append(str(problem))
        _warn(account, way, replayed)
        handler = self._handler(way)
        return RecoveryPlan(
            workflow_id,
            account.mode,
            way.checkpoint_id,
            way.passed_over,
            way.damage,
            account.events,
            replayed.count,
            replayed.skipped,
            self._kit.store.lease(workflow_id),
            handler,
            handler is not None and self._kit.app.handlers.has(handler),
            tuple(refusals),
            tuple(account.warnings),
            bool(refusals) and not way.refusals(account.mode),
        )

    def _begin(self, workflow_id: str, mode: RecoveryMode | str, target_sequence: int | None) -> _Account:
        check_workflow_id(workflow_id)
        chosen = RecoveryMode.checked(mode, target_sequence)
        if self._kit.recovery.on_no_valid is not OnNoValid.FRESH:
            known_head(self._kit.store, workflow_id)
        return _Account(workflow_id, chosen, Stopwatch(self._kit.recovery.timeout_seconds))

    @contextmanager
    def _alone(self, workflow_id: str) -> Iterator[list[str]]:
        """Keep others from the workflow meanwhile, as far as the store can be written."""
        if self._kit.store.read_only:
            yield []
            return
        with self._resumption.claims.alone(workflow_id) as claim:
            yield claim.notes

    def _set_aside(self, account: _Account, way: Way) -> None:
        """Keep what is damaged as evidence, and make keyframes anew that only shortened the way."""
        if way.problems:
            done = self._quarantine.set_aside_invalid(account.workflow_id, way.problems)
        else:
            done = self._quarantine.set_aside(account.workflow_id, way.damage)
        account.quarantined += [one.name for one in done.quarantined]
        account.warnings += done.notes

    def _rebuilt(self, account: _Account, way: Way) -> tuple[Replayed, WorkflowState]:
        """Fold the events after the checkpoint onto its state; without them where that gives no state."""
        fields = way.fields if way.found else self._blank(account, way)
        replayed = replay(fields, self._events(account, way), self._kit.app.reducers)
        skipped = sorted((*replayed.skipped, *account.unreadable), key=lambda event: event.seq)
        replayed = replace(replayed, skipped=tuple(skipped))
        try:
            state = WorkflowState.from_fields(replayed.fields)
        except InvalidStateError as problem:
            account.warnings.append(
                f"after the events the state was none ({problem}); it is the checkpoint's, without them"
            )
            replayed = Replayed(dict(fields), 0, replayed.skipped)
            state = WorkflowState.from_fields(fields)
        state.checkpoint_id = str(way.found) if way.found else None
        return replayed, state

    def _blank(self, account: _Account, way: Way) -> dict[str, object]:
        """Answer the fields that a workflow begins with, if it may begin anew."""
        if self._kit.store.head(account.workflow_id).sequence or way.passed_over:
            is_fresh = self._kit.recovery.on_no_valid is OnNoValid.FRESH
            # Whoever wants one certain state is not served by a blank one.
            if not is_fresh or account.mode is RecoveryMode.POINT_IN_TIME:
                raise nothing_valid(self._kit.store, way)
            why = "no checkpoint verifies" if way.passed_over else "all checkpoints were removed"
            account.warnings.append(
                f"{why}: this is a fresh start, from the events alone. "
                "What was damaged is in quarantine; see `holdfast quarantine list`."
            )
        else:
            account.warnings.append("there is no checkpoint yet: the state is what the events alone give")
        return WorkflowState(workflow_id=account.workflow_id).to_fields()

    def _events(self, account: _Account, way: Way) -> Iterator[Event]:
        """Read the events that the state does not know of yet, as far as they verify."""
        if account.mode is RecoveryMode.POINT_IN_TIME:
            return
        # Asked before: what others record while these are read is not lost.
        last, newest = way.event_seq, self._kit.store.head(account.workflow_id).event_seq
        try:
            for event in self._reader.opened_events(account.workflow_id, last):
                if event.seq <= way.event_seq:
                    continue
                if event.seq != last + 1:
                    break
                last = event.seq
                account.events += 1
                if account.events % _CHECK_EVERY == 0:
                    account.watch.check()
                if event.type in self._kit.app.reducers:
                    yield from self._with_values(account, event)
        except CheckpointReadError as problem:
            account.warnings.append(f"event {last + 1} cannot be read ({problem.message})")
        if last < newest:
            account.lost = newest - last
            account.warnings.append(
                f"the state is as of event {last}; events {last + 1} to {newest} are damaged or gone. "
                "Run `holdfast doctor`."
            )

    def _with_values(self, account: _Account, event: Event) -> Iterator[Event]:
        """Answer an event as a reducer takes it; nothing where it holds what nobody here knows."""
        try:
            yield self._reader.with_values(event)
        except CheckpointSchemaError as problem:
            account.unreadable.append(SkippedEvent(event.seq, event.type, str(problem)))

    def _record(self, account: _Account, way: Way, replayed: Replayed) -> None:
        """Put into the journal, and so into the trail, what was done."""
        if self._kit.store.read_only:
            account.warnings.append("the store is read-only: the recovery is not in its journal")
            return
        told: dict[str, Any] = {
            "mode": str(account.mode),
            "checkpoint": str(way.found) if way.found else None,
            "events_replayed": replayed.count,
            "events_skipped": [event.seq for event in replayed.skipped[:_NAMED_MAX]],
            "passed_over": list(way.passed_over[:_NAMED_MAX]),
            "quarantined": account.quarantined[:_NAMED_MAX],
        }
        if account.reason is not None:
            told["reason"] = account.reason
        sequence = way.found.entry.sequence if way.found else None
        self._wait(
            self._writer.append(AppendEvent(account.workflow_id, RECOVERED_EVENT, told, cp_seq=sequence))
        )

    def _saved(self, way: Way, state: WorkflowState) -> CheckpointID:
        """Record the recovered state, so that the workflow has a newest checkpoint that can be restored."""
        options: CheckpointOptions = {"force": True, "resume_handler": self._handler(way)}
        if way.found is not None:
            entry = way.found.entry
            options |= {"type": entry.type, "stage_id": entry.stage, "agent_id": entry.agent}
        with warnings.catch_warnings():
            # That the one before is damaged was told already.
            warnings.simplefilter("ignore", StoreDamageWarning)
            return self._save(way.workflow_id, state, options)

    def _handler(self, way: Way) -> str | None:
        if way.found is None:
            return None
        try:
            fields = record_fields(self._kit.store, way.workflow_id, way.found.entry, self._kit.vault)
        except CheckpointError:
            # A keyframe may lead past a damaged record; what would resume is then not known.
            return None
        return fields.get("handler")

    def _result(
        self,
        account: _Account,
        way: Way,
        replayed: Replayed,
        state: WorkflowState | None,
        refusals: tuple[str, ...] = (),
    ) -> RecoveryResult:
        return RecoveryResult(
            success=not refusals,
            state=state,
            checkpoint_used=way.checkpoint_id,
            events_replayed=replayed.count,
            recovery_time_ms=account.watch.milliseconds,
            warnings=tuple(account.warnings),
            workflow_id=account.workflow_id,
            mode=account.mode,
            skipped=replayed.skipped,
            quarantined=tuple(account.quarantined),
            passed_over=way.passed_over,
            steps=tuple(account.watch.steps),
            validation_errors=refusals,
            checkpoint_made=account.made,
            events_lost=account.lost,
        )


def _is_saved(account: _Account, way: Way, asked: bool | None) -> bool:
    """Tell whether the recovered state becomes a checkpoint: as asked, else where the newest is no use."""
    if asked is not None:
        return asked
    return bool(way.passed_over) and account.mode is not RecoveryMode.POINT_IN_TIME


def _warn(account: _Account, way: Way, replayed: Replayed) -> None:
    """Say what is different from an undisturbed run, and what to do about it."""
    account.warnings += way.notes
    if way.passed_over and way.found:
        account.warnings.append(
            f"checkpoint {way.found.entry.sequence} stands in for {_some(way.passed_over)}: what was held "
            "by those alone is lost, unless the damaged bytes are put back. See `holdfast quarantine list`."
        )
    if replayed.skipped:
        skipped = _some([f"{event.seq} ({event.type}: {event.reason})" for event in replayed.skipped])
        account.warnings.append(
            f"skipped events: {skipped}. Register a reducer that takes them, and recover again."
        )
    if way.revealed.left:
        # Where they are missing is told to those who may read the state: places are names that it holds.
        many = len(way.revealed.left)
        missing = "1 secret was" if many == 1 else f"{many} secrets were"
        account.warnings.append(f"{missing} never stored; `holdfast show` tells where. Give a resolver.")


def _some(names: Iterable[object]) -> str:
    listed = [str(name) for name in names]
    more = f" and {len(listed) - _NAMED_MAX} more" if len(listed) > _NAMED_MAX else ""
    return ", ".join(listed[:_NAMED_MAX]) + more
