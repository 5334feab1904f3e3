"""What an engine is whose workers are other processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from holdfast.execution.engines.port import Engine

#: How long a worker may be silent before another one goes on in its place.
LEASE_SECONDS = 30.0
#: How often a run looks what its workers do.
POLL_SECONDS = 0.5


class RemoteEngine(Engine, Protocol):
    """An engine whose workers are other processes, which open the store themselves."""

    @property
    def store(self) -> str | None:
        """The URL by which workers open the store; None: as the run did."""

    @property
    def lease_seconds(self) -> float:
        """How long a worker may be silent before another one goes on in its place."""

    @property
    def poll_seconds(self) -> float:
        """How often the run looks what its workers do."""

    def check(self, function: Callable[..., Any]) -> None:
        """Refuse a function that cannot get to the workers."""
