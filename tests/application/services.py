"""Services and kits on doubles, for the tests of this room."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast.adapters.memory import MemoryStore
from holdfast.application.app import App
from holdfast.application.kit import Kit
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit
from holdfast.config import Config
from holdfast.domain.plain import TypeRegistry
from holdfast.ports import Clock, IdSource, Store
from holdfast.testing import FixedClock, SequentialIds


def make_kit(
    store: Store | None = None,
    registry: TypeRegistry | None = None,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    app: App | None = None,
    **settings: Any,
) -> Kit:
    """Put a kit together whose clock moves a second per look and whose housekeeping has no thread."""
    config = Config(**{"background": False, "retain": False, **settings})
    clock = clock or FixedClock(step=timedelta(seconds=1))
    return build_kit(store or MemoryStore(), config, registry, clock, ids or SequentialIds(), app=app)


def make_service(
    store: Store | None = None, registry: TypeRegistry | None = None, **more: Any
) -> CheckpointService:
    """Open a service on such a kit."""
    return CheckpointService(make_kit(store, registry, **more))
