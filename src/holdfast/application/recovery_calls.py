"""The calls of `CheckpointService` around recovery, sessions and the standing of a store."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.domain.recovery import RecoveryMode, RecoveryResult

if TYPE_CHECKING:
    from holdfast.application.commands import CheckpointName
    from holdfast.application.engine import Engine
    from holdfast.application.faults.health import Health
    from holdfast.application.recovery.incomplete import Incomplete
    from holdfast.application.recovery.statuses import Standing
    from holdfast.application.sessions.session_state import SessionState
    from holdfast.domain.annotation import Annotation
    from holdfast.domain.recovery_plan import RecoveryPlan
    from holdfast.domain.session_context import AgentLike
    from holdfast.domain.session_record import HandOff, Session


class RecoveryCalls:
    """What a caller asks when work has stopped, or is about to."""

    _engine: Engine

    def recover_workflow(
        self,
        workflow_id: str,
        mode: RecoveryMode | str = RecoveryMode.LATEST,
        target_sequence: int | None = None,
        *,
        reason: str | None = None,
        checkpoint: bool | None = None,
    ) -> RecoveryResult:
        """Bring a workflow back from whatever is left of it.

        The newest checkpoint that verifies is restored, and the events since are replayed through their
        reducers. What is damaged goes to quarantine. The result tells all of that.

        Args:
            workflow_id: the run.
            mode: `latest`; `full` begins with the oldest checkpoint and takes every change since;
                `point_in_time` gives one checkpoint as it was.
            target_sequence: which one, for `point_in_time`.
            reason: why, for the journal.
            checkpoint: whether the recovered state is recorded as a checkpoint; by default where the newest
                one is damaged, so that the workflow has one again to go on from.

        Raises:
            CheckpointNotFoundError: there is no such workflow or checkpoint.
            NoValidCheckpointError: no checkpoint verifies; tells what remains.
            LeaseHeldError: somebody else works on it, or recovers it.
        """
        return self._engine.recovery.recover_workflow(workflow_id, mode, target_sequence, reason, checkpoint)

    def plan_recovery(
        self,
        workflow_id: str,
        mode: RecoveryMode | str = RecoveryMode.LATEST,
        target_sequence: int | None = None,
    ) -> RecoveryPlan:
        """Tell what `recover_workflow` would do; nothing is changed."""
        return self._engine.recovery.plan(workflow_id, mode, target_sequence)

    def recover_from_checkpoint(
        self,
        checkpoint_id: CheckpointName,
        *,
        override_handler: str | None = None,
        skip_validation: bool = False,
    ) -> RecoveryResult:
        """Restore a checkpoint and let its handler, one of the `app` given to `open`, resume the work.

        Args:
            checkpoint_id: the checkpoint.
            override_handler: name of another handler than the one that the checkpoint names.
            skip_validation: resume whatever its status, retries and parents say.

        Raises:
            CheckpointNotFoundError: there is no such checkpoint.
            LeaseHeldError: somebody else works on the workflow, or recovers it.
        """
        return self._engine.resumption.recover_from_checkpoint(
            checkpoint_id, override_handler=override_handler, skip_validation=skip_validation
        )

    def resume_workflow(
        self,
        workflow_id: str,
        mode: RecoveryMode | str = RecoveryMode.LATEST,
        target_sequence: int | None = None,
        *,
        override_handler: str | None = None,
        reason: str | None = None,
        skip_validation: bool = False,
    ) -> RecoveryResult:
        """Recover a workflow as `recover_workflow` does, and let its checkpoint's handler go on with it."""
        return self._engine.recovery.resume_workflow(
            workflow_id,
            mode,
            target_sequence,
            reason,
            override_handler,
            skip_validation=skip_validation,
        )

    def incomplete_workflows(self, *, stale_seconds: float | None = None) -> list[Incomplete]:
        """Find the workflows that crashed: quiet for too long, or owned by somebody who is gone."""
        return self._engine.incomplete(stale_seconds=stale_seconds)

    def mark_completed(self, checkpoint_id: CheckpointName) -> Standing:
        """Record that the work a checkpoint stands for is done."""
        return self._engine.statuses.mark_completed(checkpoint_id)

    def mark_failed(self, checkpoint_id: CheckpointName, error: BaseException | str) -> Standing:
        """Record that the work a checkpoint stands for failed, and how."""
        return self._engine.statuses.mark_failed(checkpoint_id, error)

    def pin(self, checkpoint_id: CheckpointName) -> Standing:
        """Keep a checkpoint whatever retention says."""
        return self._engine.statuses.pin(checkpoint_id)

    def unpin(self, checkpoint_id: CheckpointName) -> Standing:
        """Leave a checkpoint to retention again."""
        return self._engine.statuses.unpin(checkpoint_id)

    def annotate(
        self, checkpoint_id: CheckpointName, *, labels: Collection[str] | None = None, note: str | None = None
    ) -> Annotation:
        """Give a checkpoint labels or a note; what is None stays, and the checkpoint itself does."""
        return self._engine.annotations.annotate(checkpoint_id, labels, note)

    def open_session(
        self,
        session_id: str | None = None,
        *,
        agent: AgentLike | None = None,
        workflow_ids: Iterable[str] = (),
    ) -> Session:
        """Begin a session: one stretch of work by one process or one context window."""
        return self._engine.sessions.open_session(session_id, agent=agent, workflow_ids=workflow_ids)

    def close_session(self, session_id: str | None = None, *, summary: str | None = None) -> Session:
        """End a session whose work is done."""
        return self._engine.sessions.close_session(session_id, summary=summary)

    def hand_off(
        self,
        session_id: str | None = None,
        target_agent: AgentLike | None = None,
        summary: str | None = None,
        payload: Mapping[str, Any] | None = None,
        *,
        context_usage: float | None = None,
    ) -> HandOff:
        """End a session and leave everything that its successor needs."""
        return self._engine.sessions.hand_off(
            session_id, target_agent, summary, payload, context_usage=context_usage
        )

    def resume_session(
        self, session_id: str, new_session_id: str | None = None, *, agent: AgentLike | None = None
    ) -> SessionState:
        """Take over from a session that was handed off, or that crashed, and answer where it stands."""
        return self._engine.sessions.resume_session(session_id, new_session_id, agent=agent)

    def health(self) -> Health:
        """Tell how the service stands towards its store: what it can make durable, and what waits."""
        return self._engine.health()
