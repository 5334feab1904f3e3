"""The calls of `AsyncCheckpointService` around recovery, sessions and the standing of a store."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from holdfast.domain.errors import StoreClosedError
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

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


class AsyncRecoveryCalls:
    """What a caller asks when work has stopped, or is about to; see RecoveryCalls for what each does."""

    _engine: Engine
    _executor: ThreadPoolExecutor

    async def recover_workflow(
        self,
        workflow_id: str,
        mode: RecoveryMode | str = RecoveryMode.LATEST,
        target_sequence: int | None = None,
        *,
        reason: str | None = None,
        checkpoint: bool | None = None,
    ) -> RecoveryResult:
        """Bring a workflow back from whatever is left of it."""
        return await self._run(
            lambda: self._engine.recovery.recover_workflow(
                workflow_id, mode, target_sequence, reason, checkpoint
            )
        )

    async def plan_recovery(
        self,
        workflow_id: str,
        mode: RecoveryMode | str = RecoveryMode.LATEST,
        target_sequence: int | None = None,
    ) -> RecoveryPlan:
        """Tell what `recover_workflow` would do; nothing is changed."""
        return await self._run(lambda: self._engine.recovery.plan(workflow_id, mode, target_sequence))

    async def recover_from_checkpoint(
        self,
        checkpoint_id: CheckpointName,
        *,
        override_handler: str | None = None,
        skip_validation: bool = False,
    ) -> RecoveryResult:
        """Restore a checkpoint and let its handler, one of the `app` given to `open`, resume the work."""
        return await self._run(
            lambda: self._engine.resumption.recover_from_checkpoint(
                checkpoint_id, override_handler=override_handler, skip_validation=skip_validation
            )
        )

    async def resume_workflow(
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
        return await self._run(
            lambda: self._engine.recovery.resume_workflow(
                workflow_id, mode, target_sequence, reason, override_handler, skip_validation=skip_validation
            )
        )

    async def incomplete_workflows(self, *, stale_seconds: float | None = None) -> list[Incomplete]:
        """Find the workflows that crashed: quiet for too long, or owned by somebody who is gone."""
        return await self._run(lambda: self._engine.incomplete(stale_seconds=stale_seconds))

    async def mark_completed(self, checkpoint_id: CheckpointName) -> Standing:
        """Record that the work a checkpoint stands for is done."""
        return await self._run(lambda: self._engine.statuses.mark_completed(checkpoint_id))

    async def mark_failed(self, checkpoint_id: CheckpointName, error: BaseException | str) -> Standing:
        """Record that the work a checkpoint stands for failed, and how."""
        return await self._run(lambda: self._engine.statuses.mark_failed(checkpoint_id, error))

    async def pin(self, checkpoint_id: CheckpointName) -> Standing:
        """Keep a checkpoint whatever retention says."""
        return await self._run(lambda: self._engine.statuses.pin(checkpoint_id))

    async def unpin(self, checkpoint_id: CheckpointName) -> Standing:
        """Leave a checkpoint to retention again."""
        return await self._run(lambda: self._engine.statuses.unpin(checkpoint_id))

    async def annotate(
        self, checkpoint_id: CheckpointName, *, labels: Collection[str] | None = None, note: str | None = None
    ) -> Annotation:
        """Give a checkpoint labels or a note; what is None stays, and the checkpoint itself does."""
        return await self._run(lambda: self._engine.annotations.annotate(checkpoint_id, labels, note))

    async def open_session(
        self,
        session_id: str | None = None,
        *,
        agent: AgentLike | None = None,
        workflow_ids: Iterable[str] = (),
    ) -> Session:
        """Begin a session: one stretch of work by one process or one context window."""
        return await self._run(
            lambda: self._engine.sessions.open_session(session_id, agent=agent, workflow_ids=workflow_ids)
        )

    async def close_session(self, session_id: str | None = None, *, summary: str | None = None) -> Session:
        """End a session whose work is done."""
        return await self._run(lambda: self._engine.sessions.close_session(session_id, summary=summary))

    async def hand_off(
        self,
        session_id: str | None = None,
        target_agent: AgentLike | None = None,
        summary: str | None = None,
        payload: Mapping[str, Any] | None = None,
        *,
        context_usage: float | None = None,
    ) -> HandOff:
        """End a session and leave everything that its successor needs."""
        return await self._run(
            lambda: self._engine.sessions.hand_off(
                session_id, target_agent, summary, payload, context_usage=context_usage
            )
        )

    async def resume_session(
        self, session_id: str, new_session_id: str | None = None, *, agent: AgentLike | None = None
    ) -> SessionState:
        """Take over from a session that was handed off, or that crashed, and answer where it stands."""
        return await self._run(
            lambda: self._engine.sessions.resume_session(session_id, new_session_id, agent=agent)
        )

    async def health(self) -> Health:
        """Tell how the service stands towards its store: what it can make durable, and what waits."""
        return await self._run(self._engine.health)

    async def _run(
        self, function: Callable[_Given, _Answer], *args: _Given.args, **kwargs: _Given.kwargs
    ) -> _Answer:
        """Call something that reads or waits in a thread, with the caller's context variables."""
        context = contextvars.copy_context()
        loop = asyncio.get_running_loop()
        try:
            answer = loop.run_in_executor(self._executor, lambda: context.run(function, *args, **kwargs))
        except RuntimeError as fault:
            raise StoreClosedError("the store was closed", hint="Open it again.") from fault
        return await answer
