"""What an engine is: somewhere to run one attempt of one agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol


class Engine(Protocol):
    """Runs functions elsewhere. Safe to use from one event loop."""

    @property
    def is_remote(self) -> bool:
        """Whether agents run in other processes, where the context of this one cannot be."""

    def submit(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Start a function; the future is that of the running loop.

        Cancelling it ends the work where that can be. If its worker dies it fails with `WorkerLostError`.
        """

    def close(self) -> None:
        """Let go of every resource. Idempotent."""


class WorkerLostError(Exception):
    """The worker that ran an agent is gone; the agent can go on elsewhere."""
