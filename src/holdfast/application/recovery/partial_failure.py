"""Partial failure: one agent fails while the workflow lives. It is restarted, else work is rolled back.

What failed is kept first, as a checkpoint of its own. Nothing is undone: a rollback is a new checkpoint with
the state of the one before the failure, and history tells both.
"""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.application.commands import CreateCheckpoint
from holdfast.application.commit_queue import Ticket
from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.recovery.calling import call
from holdfast.application.recovery.searching import Search
from holdfast.application.recovery.statuses import MESSAGE_CHARS_MAX, STACKTRACE_CHARS_MAX, Statuses, hidden
from holdfast.application.resolve import Found, living
from holdfast.application.writer import Writer
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import CheckpointError, CheckpointNotFoundError, CheckpointReadError
from holdfast.domain.ids import CheckpointID, check_id, check_workflow_id
from holdfast.domain.recovery import RecoveryMode
from holdfast.domain.retry import RetryPolicy
from holdfast.domain.state import WorkflowState
from holdfast.domain.time import timestamp_text

#: How far an agent that was restarted is still trusted, per attempt; and one whose work was rolled back.
RESTARTED_FACTOR = 0.9
ROLLED_BACK_FACTOR = 0.5

Restart = Callable[[WorkflowState], Any]


@dataclass(frozen=True, slots=True)
class PartialFailure:
    """What became of an agent that failed.

    Attributes:
        restarted: whether it works again.
        state: where to go on from; confidence in it is lowered.
        error_checkpoint: what was kept of the failure.
        attempts: how often a restart was tried.
        answer: what the restarted agent answered.
        rolled_back_to: the checkpoint that the work goes on from, where no restart helped.
        checkpoint: the new last checkpoint after a rollback.
        errors: what each attempt ended with, in short.
    """

    restarted: bool
    state: WorkflowState
    error_checkpoint: CheckpointID
    attempts: int = 0
    answer: Any = None
    rolled_back_to: CheckpointID | None = None
    checkpoint: CheckpointID | None = None
    errors: tuple[str, ...] = ()


@dataclass(slots=True)
class _Case:
    """One failure while it is handled."""

    agent_id: str
    stage_id: str | None
    state: WorkflowState
    saved: CheckpointID
    attempts: int = 0
    errors: list[str] = field(default_factory=list)

    @property
    def workflow_id(self) -> str:
        return self.saved.workflow_id


class PartialFailures:
    """Handles failures of single agents."""

    def __init__(
        self,
        kit: Kit,
        writer: Writer,
        reader: Reader,
        statuses: Statuses,
        wait: Callable[[Ticket], Any],
        sleep: Callable[[float], None] = time.sleep,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._kit = kit
        self._writer = writer
        self._search = Search(kit, reader)
        self._statuses = statuses
        self._wait = wait
        self._sleep = sleep
        self._draw = draw

    def handle(
        self,
        state: WorkflowState,
        agent_id: str,
        error: BaseException,
        restart: Restart,
        *,
        stage_id: str | None = None,
        resume_handler: str | None = None,
        policy: RetryPolicy | None = None,
    ) -> PartialFailure:
        """Keep what failed, restart the agent, and roll back where that does not help.

        Args:
            state: the state of the workflow when it happened.
            agent_id: the agent that failed.
            error: what happened to it.
            restart: starts it again from a state; a coroutine function is welcome. What it answers is
                answered; a WorkflowState becomes the state to go on from.
            stage_id: the stage it works in.
            resume_handler: what would resume the work, should the whole process die meanwhile.
            policy: how often a restart is tried, and after which pauses.

        Raises:
            CheckpointWriteError: what failed could not be kept; nothing was restarted.
        """
        check_workflow_id(state.workflow_id)
        check_id("agent", agent_id)
        chosen = policy or self._kit.faults.retry
        failed = self._failed_state(state, agent_id, error)
        saved = self._save(failed, agent_id, stage_id, error, resume_handler, chosen)
        case = _Case(agent_id, stage_id, failed, saved)
        last = error
        while case.attempts < chosen.max_attempts and not isinstance(last, chosen.non_retryable_errors):
            if case.attempts:
                self._sleep(chosen.delay_seconds(case.attempts, self._draw()))
            case.attempts += 1
            with suppress(CheckpointNotFoundError):
                # What was kept may have been pruned meanwhile, by an agent that records much.
                self._statuses.mark_recovering(saved)
            try:
                answer = call(restart, state, timeout_seconds=self._kit.recovery.timeout_seconds)
            except Exception as problem:
                last = problem
                self._note(case, problem)
            else:
                return self._restarted(case, state, answer)
        return self._rolled_back(case, last)

    def _note(self, case: _Case, problem: BaseException) -> None:
        self._settle(case, lambda: self._statuses.mark_failed(case.saved, problem))
        message = hidden(self._kit, _message(problem), MESSAGE_CHARS_MAX)
        case.errors.append(f"{type(problem).__name__}: {message}")

    def _settle(self, case: _Case, change: Callable[[], object]) -> None:
        """Record how a try ended; what came of it is not lost where that cannot be recorded."""
        try:
            change()
        except CheckpointError as problem:
            case.errors.append(f"the status of {case.saved} is not recorded: {problem.message}")

    def _restarted(self, case: _Case, state: WorkflowState, answer: Any) -> PartialFailure:
        self._settle(case, lambda: self._statuses.mark_completed(case.saved))
        going_on = answer if isinstance(answer, WorkflowState) else state
        factor = RESTARTED_FACTOR**case.attempts
        return PartialFailure(
            True,
            with_less_confidence(going_on, case.agent_id, factor),
            case.saved,
            case.attempts,
            answer,
            errors=tuple(case.errors),
        )

    def _rolled_back(self, case: _Case, last: BaseException) -> PartialFailure:
        """Go on from the checkpoint before the failure, as a new one; where there is none, from here."""
        if not case.attempts:
            self._note(case, last)
        found, restored = self._before(case)
        state = with_less_confidence(restored or case.state, case.agent_id, ROLLED_BACK_FACTOR)
        if found is None:
            errors = (*case.errors, "there is no checkpoint before the failure that could be rolled back to")
            return PartialFailure(False, state, case.saved, case.attempts, errors=errors)
        state.decisions = [*state.decisions, self._decision(case, found)]
        command = CreateCheckpoint(
            case.workflow_id,
            state.to_fields(),
            CheckpointType(found.entry.type),
            phase=state.phase,
            stage_id=found.entry.stage,
            agent_id=found.entry.agent,
            session_id=state.session_id or None,
            parent_uuid=found.entry.uuid,
            force=True,
        )
        checkpoint: CheckpointID = self._wait(self._writer.create(command))
        return PartialFailure(
            False,
            replace(state, checkpoint_id=str(checkpoint)),
            case.saved,
            case.attempts,
            rolled_back_to=found.id,
            checkpoint=checkpoint,
            errors=tuple(case.errors),
        )

    def _before(self, case: _Case) -> tuple[Found | None, WorkflowState | None]:
        """Find the newest checkpoint before the failure that verifies, and restore it; none of a failure."""
        older = (
            entry.sequence
            for entry in living(self._kit.store, case.workflow_id)
            if entry.sequence < case.saved.sequence and entry.type != CheckpointType.ERROR_STATE
        )
        sequence = next(older, None)
        if sequence is None:
            return None, None
        try:
            way = self._search.way(case.workflow_id, RecoveryMode.POINT_IN_TIME, sequence)
        except CheckpointReadError as problem:
            case.errors.append(str(problem))
            return None, None
        return way.found, WorkflowState.from_fields(way.fields) if way.found else None

    def _save(
        self,
        failed: WorkflowState,
        agent_id: str,
        stage_id: str | None,
        error: BaseException,
        resume_handler: str | None,
        policy: RetryPolicy,
    ) -> CheckpointID:
        command = CreateCheckpoint(
            failed.workflow_id,
            failed.to_fields(),
            CheckpointType.ERROR_STATE,
            phase=failed.phase,
            stage_id=stage_id,
            agent_id=agent_id,
            agent_state={"failure": self._context(error)},
            session_id=failed.session_id or None,
            resume_handler=resume_handler,
            max_retries=policy.max_attempts,
            force=True,
        )
        saved: CheckpointID = self._wait(self._writer.create(command))
        return saved

    def _failed_state(self, state: WorkflowState, agent_id: str, error: BaseException) -> WorkflowState:
        """Answer the state with the agent marked as failed; the caller's object is the caller's."""
        known = _agent_fields(state, agent_id)
        blockers = [*(known.get("blockers") or ()), hidden(self._kit, _message(error), MESSAGE_CHARS_MAX)]
        marked = {**known, "status": "failed", "blockers": blockers}
        return replace(state, agent_states={**state.agent_states, agent_id: marked})

    def _context(self, error: BaseException) -> dict[str, Any]:
        """Say what happened, without secrets."""
        stacktrace = "".join(traceback.TracebackException.from_exception(error).format())
        return {
            "error_type": type(error).__name__,
            "error_message": hidden(self._kit, _message(error), MESSAGE_CHARS_MAX),
            "error_stacktrace": hidden(self._kit, stacktrace, STACKTRACE_CHARS_MAX),
            "failed_at": timestamp_text(self._kit.clock.now()),
        }

    def _decision(self, case: _Case, found: Found) -> dict[str, Any]:
        return {
            "ts": timestamp_text(self._kit.clock.now()),
            "agent": case.agent_id,
            "type": "rollback",
            "description": f"Rolled back to {found} after {case.attempts} restarts failed",
            "rationale": case.errors[-1],
            "error_checkpoint": str(case.saved),
        }


def with_less_confidence(state: WorkflowState, agent_id: str, factor: float) -> WorkflowState:
    """Lower the confidence in a workflow and in one of its agents; what is no number is left as it is."""
    lowered = replace(state)
    if isinstance(state.confidence, dict):
        names = (agent_id, "overall")
        lowered.confidence = {
            name: _scaled(value, factor) if name in names else value
            for name, value in state.confidence.items()
        }
    else:
        lowered.confidence = _scaled(state.confidence, factor)
    known = _agent_fields(state, agent_id)
    if "confidence" in known:
        agent = {**known, "confidence": _scaled(known["confidence"], factor)}
        lowered.agent_states = {**state.agent_states, agent_id: agent}
    return lowered


def _scaled(value: Any, factor: float) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value * factor if is_number else value


def _agent_fields(state: WorkflowState, agent_id: str) -> dict[str, Any]:
    known = state.agent_states.get(agent_id)
    return dict(known) if isinstance(known, dict) else {}


def _message(error: BaseException) -> str:
    return str(traceback.TracebackException.from_exception(error)) or type(error).__name__
