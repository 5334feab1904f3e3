"""Resuming work: from a checkpoint and its state, through the handler it names, to a new status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf
from threading import Event
from typing import Any

from holdfast.application.commands import CheckpointName
from holdfast.application.commit_queue import Ticket
from holdfast.application.execution_context import ExecutionContext
from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.recovery.ancestry import Ancestry, described
from holdfast.application.recovery.calling import call
from holdfast.application.recovery.claiming import LEASE_SECONDS, Claim, Claims
from holdfast.application.recovery.examining import Attempt, Handler, examine
from holdfast.application.recovery.quarantining import Quarantine
from holdfast.application.recovery.searching import Search, Way
from holdfast.application.recovery.statuses import Standing, Statuses
from holdfast.application.recovery.stopwatch import Stopwatch
from holdfast.application.recovery_files import RecoveryFiles
from holdfast.application.resolve import Found, living, resolve
from holdfast.application.survey import damaged_sequences
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.checkpoint import (
    Checkpoint,
    CheckpointStatus,
    CheckpointType,
)
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    CheckpointRecoveryError,
    HandlerNotFoundError,
    NoValidCheckpointError,
)
from holdfast.domain.recovery import RecoveryMode, RecoveryResult
from holdfast.domain.state import WorkflowState

_OWNER_DIED = "the recovery of this checkpoint ended without an outcome: whoever carried it out is gone"


class Resumption:
    """Resumes the work of checkpoints; of two who try at once, one wins."""

    def __init__(
        self,
        kit: Kit,
        trail: Trail,
        writer: Writer,
        reader: Reader,
        wait: Callable[[Ticket], object],
        quarantine: Quarantine | None = None,
        *,
        open_service: Callable[[], Any] | None = None,
        lease_seconds: float = LEASE_SECONDS,
    ) -> None:
        self._kit = kit
        self._trail = trail
        self._reader = reader
        self._quarantine = quarantine
        self._open_service = open_service
        self._search = Search(kit, reader)
        self.claims = Claims(kit, trail, writer, lease_seconds=lease_seconds)
        self.statuses = Statuses(kit, writer, reader, wait)
        self.files = RecoveryFiles(kit, trail)

    def recover_from_checkpoint(
        self, name: CheckpointName, *, override_handler: Handler | None = None, skip_validation: bool = False
    ) -> RecoveryResult:
        """Restore a checkpoint and let its handler resume the work.

        Args:
            name: the checkpoint.
            override_handler: another handler than the one that the checkpoint names.
            skip_validation: resume whatever its status, retries and parents say; that is told in warnings.

        Returns:
            What was done. Without success either `validation_errors` say why the handler was not called, or
            `recovered_checkpoint` has the error that it ended with.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint.
            NoValidCheckpointError: neither it nor one before it verifies.
            LeaseHeldError: somebody else has the workflow, or recovers it at this moment.
            CheckpointConflictError: another recovery was faster.
            HandlerNotFoundError: the validation was skipped, and nobody registered the handler.
        """
        asked = resolve(self._kit.store, name)
        with self._trail.refusals(asked.workflow_id), self.claims.alone(asked.workflow_id):
            way = self._search.way(asked.workflow_id, RecoveryMode.POINT_IN_TIME, asked.entry.sequence)
            warnings = list(way.notes)
            names = self._set_aside(way, warnings)
            if way.found is None:
                raise _nothing_valid(asked, way)
            state = WorkflowState.from_fields(way.fields)
            state.checkpoint_id = str(way.found)
            self._reader.tell(AuditType.STATE_RESTORED, way.found)
            if way.found.entry.sequence != asked.entry.sequence:
                warnings.append(f"{asked} does not verify; {way.found} stands in for it")
            looked = asked if way.found.entry.sequence == asked.entry.sequence else way.found
            result = self.resume(looked, state, handler=override_handler, skip_validation=skip_validation)
        self._tell(result)
        return replace(
            result,
            warnings=(*warnings, *result.warnings),
            passed_over=way.passed_over,
            quarantined=names,
            mode=RecoveryMode.POINT_IN_TIME,
        )

    def resume_point(self, workflow_id: str) -> Found:
        """Find where a workflow that crashed is resumed: where its last unfinished agent began, else the end.

        Raises:
            NoValidCheckpointError: it has no checkpoint.
        """
        ended: set[tuple[str | None, str | None]] = set()
        newest: Found | None = None
        for entry in living(self._kit.store, workflow_id):
            newest = newest or Found(workflow_id, entry)
            worker = (entry.stage, entry.agent)
            is_done = entry.status == CheckpointStatus.COMPLETED
            if entry.type == CheckpointType.AGENT_START and worker not in ended and not is_done:
                return Found(workflow_id, entry)
            if entry.agent is not None:
                ended.add(worker)
        if newest is None:
            raise NoValidCheckpointError("the workflow has no checkpoint", place=workflow_id)
        return newest

    def resume(
        self,
        found: Found,
        state: WorkflowState,
        *,
        handler: Handler | None = None,
        skip_validation: bool = False,
    ) -> RecoveryResult:
        """Let the handler of a checkpoint go on from a state that was restored; see recover_from_checkpoint.

        Args:
            found: the checkpoint, as it stood when the caller decided to resume it.
            state: what the handler is given.
        """
        attempt = Attempt(found, state, Stopwatch(inf))
        with self.claims.alone(found.workflow_id) as claim:
            with attempt.watch.step("validate"):
                self._prepare(attempt, claim, handler)
                if attempt.problems and not skip_validation:
                    return self._refused(attempt)
            attempt.warnings += attempt.problems
            if attempt.function is None:
                raise self._handlerless(attempt)
            return self._carried_out(attempt, claim)

    def context_for(self, name: CheckpointName) -> ExecutionContext:
        """Give what a handler of a checkpoint would be given; nothing is changed."""
        found = resolve(self._kit.store, name)
        state = self._reader.restore(found.id)
        checkpoint = described(self._kit, self._reader, found)
        return self._context(found, checkpoint, state)

    def _context(
        self,
        found: Found,
        checkpoint: Checkpoint,
        state: WorkflowState,
        is_over: Event | None = None,
        warnings: tuple[str, ...] = (),
    ) -> ExecutionContext:
        ancestry = Ancestry(self._kit, self._reader, found)
        return ExecutionContext(
            checkpoint,
            state,
            ancestry.checkpoints,
            is_over=is_over,
            warnings=warnings,
            open_service=self._open_service,
        )

    def _prepare(self, attempt: Attempt, claim: Claim, handler: Handler | None) -> None:
        """Look at everything that has to be right before the handler is called."""
        attempt.warnings += claim.notes
        self._look_again(attempt)
        examine(self._kit, self._reader, attempt, handler)

    def _look_again(self, attempt: Attempt) -> None:
        """Read the status under the lease; a recovery that nobody finished is a failure that nobody told."""
        current = resolve(self._kit.store, attempt.found.id)
        if current.entry.status != attempt.found.entry.status:
            raise CheckpointConflictError(
                f"another recovery was faster: the checkpoint was {attempt.found.entry.status}, it is "
                f"{current.entry.status} now",
                place=str(current),
                hint="See what it did; try again if there still is something to resume.",
            )
        if current.entry.status == CheckpointStatus.RECOVERING:
            stands = self.statuses.mark_failed(current.id, _OWNER_DIED)
            attempt.warnings.append(f"{_OWNER_DIED}; that was attempt {stands.retry_count}")
            self._keep_failure(attempt, "OwnerDied", stands)
            current = resolve(self._kit.store, current.id)
        attempt.found = current

    def _handlerless(self, attempt: Attempt) -> HandlerNotFoundError:
        if attempt.handler is not None:
            self._kit.app.handlers.get(attempt.handler)
        return HandlerNotFoundError(
            "the checkpoint names no handler that could resume the work",
            place=str(attempt.found),
            hint="Name one: `override_handler`.",
        )

    def _carried_out(self, attempt: Attempt, claim: Claim) -> RecoveryResult:
        """Call the handler, between a status that says so and one that says how it ended."""
        assert attempt.checkpoint is not None and attempt.function is not None
        found = attempt.found
        is_told = found.entry.status != CheckpointStatus.COMPLETED
        with attempt.watch.step("begin"):
            if is_told:
                self._stand(attempt, self.statuses.mark_recovering(found.id))
            else:
                attempt.warnings.append(f"{found} was completed before; its handler runs again")
        context = self._context(
            found, attempt.checkpoint, attempt.state, claim.is_over, tuple(attempt.warnings)
        )
        try:
            with attempt.watch.step("handler"):
                timeout_seconds = self._kit.recovery.timeout_seconds
                answer = call(attempt.function, context, timeout_seconds=timeout_seconds)
        except Exception as error:
            claim.is_over.set()
            return self._failed(attempt, context, error, is_told=is_told)
        except BaseException as interruption:
            claim.is_over.set()
            self._failed(attempt, context, interruption, is_told=is_told)
            raise
        return self._succeeded(attempt, context, answer, is_told=is_told)

    def _succeeded(
        self, attempt: Attempt, context: ExecutionContext, answer: object, *, is_told: bool
    ) -> RecoveryResult:
        with attempt.watch.step("record"):
            status = self._status_now(attempt) if is_told else None
            if status == CheckpointStatus.RECOVERING:
                self._stand(attempt, self.statuses.mark_completed(attempt.found.id))
            resumed = answer if isinstance(answer, str) and answer else attempt.found.workflow_id
            self.files.record({attempt.found.workflow_id: None, resumed: None})
        success = status != CheckpointStatus.FAILED
        return replace(self._result(attempt, context), success=success, resumed_workflow_id=resumed)

    def _status_now(self, attempt: Attempt) -> str | None:
        """Look how a checkpoint stands after its handler, which may have settled it, or pruned it: None."""
        try:
            status = resolve(self._kit.store, attempt.found.id).entry.status
        except CheckpointNotFoundError as problem:
            attempt.warnings.append(f"how {attempt.found} ended is not recorded: {problem.message} meanwhile")
            return None
        if status != CheckpointStatus.RECOVERING:
            attempt.warnings.append(f"{attempt.found} was marked {status} while its handler ran")
        return status

    def _failed(
        self, attempt: Attempt, context: ExecutionContext, error: BaseException, *, is_told: bool
    ) -> RecoveryResult:
        with attempt.watch.step("record"):
            if is_told and self._status_now(attempt) == CheckpointStatus.RECOVERING:
                stands = self.statuses.mark_failed(attempt.found.id, error)
                self._stand(attempt, stands)
                left = max(attempt.attempts_max - stands.retry_count, 0)
                attempt.warnings.append(
                    f"the handler {attempt.handler} failed ({type(error).__name__}: {stands.error_message}); "
                    f"{left} of {attempt.attempts_max} attempts are left"
                )
            else:
                stands = self.statuses.told(attempt.found, error)
                attempt.warnings.append(
                    f"the handler {attempt.handler} failed ({type(error).__name__}: {stands.error_message})"
                )
            self._keep_failure(attempt, type(error).__name__, stands)
        return self._result(attempt, context)

    def _stand(self, attempt: Attempt, stands: Standing) -> None:
        """Keep how the checkpoint stands now."""
        assert attempt.checkpoint is not None
        attempt.checkpoint = replace(
            attempt.checkpoint,
            status=stands.status,
            updated_at=stands.updated_at,
            retry_count=stands.retry_count,
            error_message=stands.error_message,
            error_stacktrace=stands.error_stacktrace,
        )

    def _keep_failure(self, attempt: Attempt, error: str, stands: Standing) -> None:
        found = attempt.found
        failure = self.files.failure_of(
            found, attempt.handler, error, stands.error_message, stands.retry_count
        )
        self.files.record([found.workflow_id], failure)

    def _refused(self, attempt: Attempt) -> RecoveryResult:
        refusal = CheckpointRecoveryError("the work cannot be resumed", place=str(attempt.found))
        self._trail.refused(attempt.found.workflow_id, refusal)
        return replace(self._result(attempt), handler=None, validation_errors=tuple(attempt.problems))

    def _result(self, attempt: Attempt, context: ExecutionContext | None = None) -> RecoveryResult:
        return RecoveryResult(
            success=False,
            state=context.workflow_state if context else attempt.state,
            checkpoint_used=attempt.found.id,
            recovery_time_ms=attempt.watch.milliseconds,
            warnings=tuple(attempt.warnings),
            workflow_id=attempt.found.workflow_id,
            steps=tuple(attempt.watch.steps),
            handler=attempt.handler,
            recovered_checkpoint=attempt.checkpoint,
        )

    def _set_aside(self, way: Way, warnings: list[str]) -> tuple[str, ...]:
        """Keep what is damaged as evidence, and say in the journal which checkpoints failed by it."""
        for sequence in damaged_sequences(way.damage):
            if sequence in way.passed_over:
                reason = "; ".join(str(one) for one in way.damage if one.sequence == sequence)
                self._give_up(f"{way.workflow_id}@{sequence}", reason)
        if self._quarantine is None:
            return ()
        done = self._quarantine.set_aside(way.workflow_id, way.damage)
        warnings += done.notes
        return tuple(one.name for one in done.quarantined)

    def _give_up(self, name: str, reason: str) -> None:
        """Mark a checkpoint that cannot be read as failed, where it was still to be worked on."""
        status = resolve(self._kit.store, name).entry.status
        if status in (CheckpointStatus.ACTIVE, CheckpointStatus.RECOVERING):
            self.statuses.mark_failed(name, f"the checkpoint is damaged: {reason}")

    def _tell(self, result: RecoveryResult) -> None:
        """Tell in the trail how a recovery ended."""
        if result.validation_errors or result.checkpoint_used is None:
            return
        outcome = Outcome.SUCCESS if result.success else Outcome.FAILURE
        facts: dict[str, int | str] = {
            "cp_seq": result.checkpoint_used.sequence,
            "checksum": result.checkpoint_used.checksum,
        }
        told = self._trail.told(
            AuditType.WORKFLOW_RECOVERED, workflow_id=result.workflow_id, outcome=outcome, facts=facts
        )
        self._trail.note(*told)


def _nothing_valid(asked: Found, way: Way) -> NoValidCheckpointError:
    return NoValidCheckpointError(
        f"neither the checkpoint nor one before it verifies (damaged pieces: {len(way.damage)})",
        place=str(asked),
        hint="See `holdfast quarantine list`; restore the files from a backup and release them.",
    )
