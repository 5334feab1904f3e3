"""Recording how the work of a checkpoint ended; of one that waits for the disk, once the store has it."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from holdfast.application.resolve import living
from holdfast.domain.errors import CheckpointError, CheckpointWriteError
from holdfast.domain.ids import CheckpointID

if TYPE_CHECKING:
    from holdfast.application.commands import CheckpointName
    from holdfast.application.engine import Engine

_LOG = logging.getLogger("holdfast")


def mark(engine: Engine, checkpoint_id: CheckpointID, error: str | None) -> None:
    """Record how the work that a checkpoint stands for ended; a fault of the store is logged."""
    workflow_id = checkpoint_id.workflow_id
    if engine.writer.held_base(workflow_id) is not None:
        try:
            engine.safety.flush()
        except CheckpointWriteError:
            # The store has no such checkpoint yet, and that it waits is told anyway.
            engine.safety.once_written(workflow_id, partial(_mark_late, engine, checkpoint_id, error))
            return
    _record(engine, checkpoint_id, error)


def _mark_late(engine: Engine, checkpoint_id: CheckpointID, error: str | None) -> None:
    """Record it of what waited: its number may be another one now, and it may have been refused."""
    workflow_id = checkpoint_id.workflow_id
    try:
        entries = living(engine.kit.store, workflow_id)
        found = next((one for one in entries if one.uuid == checkpoint_id.uuid), None)
    except CheckpointError as problem:
        _not_recorded(checkpoint_id, problem)
        return
    if found is not None:
        _record(engine, f"{workflow_id}@{found.sequence}", error)


def _record(engine: Engine, name: CheckpointName, error: str | None) -> None:
    try:
        if error is None:
            engine.statuses.mark_completed(name)
        else:
            engine.statuses.mark_failed(name, error)
    except CheckpointError as problem:
        _not_recorded(name, problem)


def _not_recorded(name: CheckpointName, problem: CheckpointError) -> None:
    _LOG.warning("how %s stands is not recorded: %s", name, problem)
