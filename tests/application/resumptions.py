"""Services that can resume work, for the tests of this room."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.application.app import App
from holdfast.application.kit import Kit
from holdfast.application.recovery.resuming import Resumption
from holdfast.application.service import CheckpointService
from holdfast.domain.recovery import RecoverySettings
from holdfast.ports import Store
from tests.application.services import make_kit

#: Long enough for a handler that waits for another thread, on a busy machine.
PATIENT_SECONDS = 60.0


class Worker:
    """A service, and what resumes work over it."""

    def __init__(self, kit: Kit, **more: Any) -> None:
        self.kit = kit
        self.service = CheckpointService(kit)
        engine = self.service._engine
        self.resumption = Resumption(
            kit, engine.trail, engine.writer, engine.reader, engine.wait, engine.quarantine, **more
        )

    @property
    def app(self) -> App:
        return self.kit.app

    def statuses(self, workflow_id: str = "W") -> list[tuple[int, str, int]]:
        """Tell how all checkpoints stand: sequence, status, retries."""
        return [
            (entry.sequence, entry.status, entry.retry_count) for entry in self.kit.store.entries(workflow_id)
        ]

    def told_statuses(self, workflow_id: str = "W") -> list[tuple[int | None, str, int]]:
        """Tell the same of every change, as the journal has it."""
        return [
            (event.cp_seq, event.data["status"], event.data["retry_count"])
            for event in self.service.events(workflow_id, type="CHECKPOINT_STATUS")
        ]


def make_worker(
    store: Store | None = None,
    app: App | None = None,
    recovery: RecoverySettings | None = None,
    *,
    lease_seconds: float = 30.0,
    **settings: Any,
) -> Worker:
    """Put a worker together on doubles."""
    kit = make_kit(store, **settings)
    chosen = recovery or RecoverySettings(timeout_seconds=PATIENT_SECONDS)
    kit = replace(kit, app=app or App(), recovery=chosen)
    return Worker(kit, lease_seconds=lease_seconds)
