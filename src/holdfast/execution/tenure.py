"""Having a workflow to oneself for a while: its store, its lease, and the state that it was left in."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, TypeVar

from holdfast.application.app import App
from holdfast.application.recording import Recording
from holdfast.bootstrap import open as open_service
from holdfast.config import Config
from holdfast.domain.errors import CheckpointRecoveryError
from holdfast.domain.state import WorkflowState
from holdfast.execution.claim import Claim
from holdfast.execution.declared import Service, StoreLike
from holdfast.execution.finishing import begun, finished, settled
from holdfast.execution.leases import KEEPER

_Value = TypeVar("_Value")
_LOG = logging.getLogger("holdfast")
#: Reads the configuration, given what was asked for directly.
Configured = Callable[[Mapping[str, Any]], Config]


@contextmanager
def opened(
    store: StoreLike, app: App | None = None, *, configured: Configured = Config.load
) -> Iterator[Service]:
    """Answer an open service; one that was opened here, as it is `configured`, is closed here."""
    if not isinstance(store, str | os.PathLike):
        yield store
        return
    with open_service(config=configured({"store": os.fspath(store)}), app=app) as service:
        yield service


@contextmanager
def taken(recording: Recording, workflow_id: str, ttl_seconds: float) -> Iterator[Claim]:
    """Have a workflow meanwhile; its lease is renewed by a thread of its own.

    Raises:
        LeaseHeldError: somebody else has it, and may be alive.
    """
    claim = Claim()
    lease = recording.take(workflow_id, "run", ttl_seconds)
    KEEPER.keep(recording, lease, ttl_seconds, claim.lose)
    try:
        yield claim
    finally:
        KEEPER.drop(recording, lease)
        if not claim.is_lost:
            recording.give_up(lease)


def brought_back(recording: Recording, workflow_id: str) -> WorkflowState | None:
    """Answer the newest state of a workflow that is taken; None if nothing of it was recorded.

    One without a `checkpoint_id` was made from events alone, where nothing else verified.

    Raises:
        CheckpointRecoveryError: it cannot be brought back.
    """
    if not recording.exists(workflow_id):
        return None
    recovered = recording.recover(workflow_id)
    if not recovered.success or recovered.state is None:
        raise CheckpointRecoveryError(
            "; ".join(recovered.validation_errors) or "it cannot be brought back", place=workflow_id
        )
    for text in recovered.warnings:
        _LOG.warning("%s is not quite as it was left: %s", workflow_id, text)
    return recovered.state


@asynccontextmanager
async def aside(blocking: AbstractContextManager[_Value]) -> AsyncIterator[_Value]:
    """Enter and leave what waits for the disk in a thread, so that the event loop does not."""
    entering = begun(blocking.__enter__)
    cancelled = await settled(entering)
    if cancelled is not None:
        # Whoever is cancelled while a lease is being taken leaves none behind.
        if entering.exception() is None:
            await settled(_leaving(blocking, cancelled))
        raise cancelled
    try:
        yield entering.result()
    except BaseException as fault:
        if not await finished(_leaving(blocking, fault)):
            raise
    else:
        await finished(_leaving(blocking, None))


def _leaving(
    blocking: AbstractContextManager[Any], fault: BaseException | None
) -> asyncio.Future[bool | None]:
    kind, trace = (None, None) if fault is None else (type(fault), fault.__traceback__)
    return begun(blocking.__exit__, kind, fault, trace)
