"""Reading back and recovering as they are where somebody counts or traces: each call is told of."""

from __future__ import annotations

from holdfast.application.commands import CheckpointName
from holdfast.application.observing import recovering, restoring
from holdfast.application.reading import Reader
from holdfast.application.recovery.examining import Handler
from holdfast.application.recovery.recovering import Recovery
from holdfast.application.recovery.resuming import Resumption
from holdfast.application.resolve import resolve
from holdfast.domain.recovery import RecoveryMode, RecoveryResult
from holdfast.domain.state import WorkflowState


class WatchedReader(Reader):
    """Reads states back, and tells of it."""

    def restore(self, name: CheckpointName, *, stacklevel: int = 3) -> WorkflowState:
        """Answer the state of a checkpoint, verified."""
        with restoring(self._kit, name):
            return super().restore(name, stacklevel=stacklevel + 1)


class WatchedResumption(Resumption):
    """Lets handlers resume work, and tells of it."""

    def recover_from_checkpoint(
        self, name: CheckpointName, *, override_handler: Handler | None = None, skip_validation: bool = False
    ) -> RecoveryResult:
        """Restore a checkpoint and let its handler resume the work."""
        workflow_id = resolve(self._kit.store, name).workflow_id
        with recovering(self._kit, workflow_id, RecoveryMode.POINT_IN_TIME) as watched:
            result = super().recover_from_checkpoint(
                name, override_handler=override_handler, skip_validation=skip_validation
            )
            return watched.ended(result)


class WatchedRecovery(Recovery):
    """Recovers workflows, and tells of it."""

    def recover_workflow(
        self,
        workflow_id: str,
        mode: RecoveryMode | str,
        target_sequence: int | None,
        reason: str | None = None,
        checkpoint: bool | None = None,
    ) -> RecoveryResult:
        """Bring a workflow back."""
        with recovering(self._kit, workflow_id, mode) as watched:
            result = super().recover_workflow(workflow_id, mode, target_sequence, reason, checkpoint)
            return watched.ended(result)
