"""Durable checkpoints, journals and audit trails for multi-agent workflows.

The front door: everything public is here, and is imported when it is first asked for, because the command
line passes through this door too and must not wait for asyncio or a codec to show its help.
"""

from __future__ import annotations

# Known to type checkers by its name; importing `typing` for it would cost more than all the rest here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.application.aio import AsyncCheckpointService
    from holdfast.application.app import App
    from holdfast.application.handlers import HandlerRegistry
    from holdfast.application.service import CheckpointService
    from holdfast.application.sessions.context_watch import ContextWatch, Leaving
    from holdfast.application.trailing import correlate
    from holdfast.bootstrap import open, open_async
    from holdfast.config import Config
    from holdfast.domain.checkpoint import CheckpointMeta, CheckpointStatus, CheckpointType
    from holdfast.domain.errors import (
        AgentFailedError,
        CheckpointConflictError,
        CheckpointCorruptError,
        CheckpointError,
        CheckpointNotFoundError,
        CheckpointRecoveryError,
        CheckpointWriteError,
        LeaseHeldError,
        LeaseLostError,
        NoValidCheckpointError,
        ResultLostError,
        UnsupportedTypeError,
    )
    from holdfast.domain.event import Event
    from holdfast.domain.ids import CheckpointID
    from holdfast.domain.personal import Erased, Personal
    from holdfast.domain.plain import TypeRegistry
    from holdfast.domain.record import Lease
    from holdfast.domain.recovery import RecoveryMode, RecoveryResult
    from holdfast.domain.release import __version__
    from holdfast.domain.retention import RetentionPolicy
    from holdfast.domain.state import WorkflowState
    from holdfast.execution.approvals import Approval
    from holdfast.execution.context import Context
    from holdfast.execution.durable import durable, step
    from holdfast.execution.effects import Found
    from holdfast.execution.loop import loop
    from holdfast.execution.options import RunOptions
    from holdfast.execution.outcome import RunResult, RunStatus
    from holdfast.execution.plan import Retry
    from holdfast.execution.triggers import Triggers
    from holdfast.execution.workflow import Workflow

__all__ = [
    "AgentFailedError",
    "App",
    "Approval",
    "AsyncCheckpointService",
    "CheckpointConflictError",
    "CheckpointCorruptError",
    "CheckpointError",
    "CheckpointID",
    "CheckpointMeta",
    "CheckpointNotFoundError",
    "CheckpointRecoveryError",
    "CheckpointService",
    "CheckpointStatus",
    "CheckpointType",
    "CheckpointWriteError",
    "Config",
    "Context",
    "ContextWatch",
    "Erased",
    "Event",
    "Found",
    "HandlerRegistry",
    "Lease",
    "LeaseHeldError",
    "LeaseLostError",
    "Leaving",
    "NoValidCheckpointError",
    "Personal",
    "RecoveryMode",
    "RecoveryResult",
    "ResultLostError",
    "RetentionPolicy",
    "Retry",
    "RunOptions",
    "RunResult",
    "RunStatus",
    "Triggers",
    "TypeRegistry",
    "UnsupportedTypeError",
    "Workflow",
    "WorkflowState",
    "__version__",
    "correlate",
    "durable",
    "loop",
    "open",
    "open_async",
    "step",
]

_ROOMS = {
    "holdfast.application.aio": ("AsyncCheckpointService",),
    "holdfast.application.app": ("App",),
    "holdfast.application.sessions.context_watch": ("ContextWatch", "Leaving"),
    "holdfast.application.handlers": ("HandlerRegistry",),
    "holdfast.application.service": ("CheckpointService",),
    "holdfast.application.trailing": ("correlate",),
    "holdfast.bootstrap": ("open", "open_async"),
    "holdfast.config": ("Config",),
    "holdfast.domain.checkpoint": ("CheckpointMeta", "CheckpointStatus", "CheckpointType"),
    "holdfast.domain.errors": (
        "AgentFailedError",
        "CheckpointConflictError",
        "CheckpointCorruptError",
        "CheckpointError",
        "CheckpointNotFoundError",
        "CheckpointRecoveryError",
        "CheckpointWriteError",
        "LeaseHeldError",
        "LeaseLostError",
        "NoValidCheckpointError",
        "ResultLostError",
        "UnsupportedTypeError",
    ),
    "holdfast.domain.event": ("Event",),
    "holdfast.domain.ids": ("CheckpointID",),
    "holdfast.domain.personal": ("Erased", "Personal"),
    "holdfast.domain.plain": ("TypeRegistry",),
    "holdfast.domain.record": ("Lease",),
    "holdfast.domain.recovery": ("RecoveryMode", "RecoveryResult"),
    "holdfast.domain.release": ("__version__",),
    "holdfast.domain.retention": ("RetentionPolicy",),
    "holdfast.domain.state": ("WorkflowState",),
    "holdfast.execution.approvals": ("Approval",),
    "holdfast.execution.context": ("Context",),
    "holdfast.execution.durable": ("durable", "step"),
    "holdfast.execution.effects": ("Found",),
    "holdfast.execution.loop": ("loop",),
    "holdfast.execution.options": ("RunOptions",),
    "holdfast.execution.outcome": ("RunResult", "RunStatus"),
    "holdfast.execution.plan": ("Retry",),
    "holdfast.execution.triggers": ("Triggers",),
    "holdfast.execution.workflow": ("Workflow",),
}

# Hidden from type checkers, who would otherwise believe in any name at all.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Fetch a public name from its room, once."""
        from importlib import import_module

        for room, names in _ROOMS.items():
            if name in names:
                value: object = getattr(import_module(room), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
