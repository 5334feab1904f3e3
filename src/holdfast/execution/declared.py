"""What a run needs to know of a workflow that was declared, and of where it is run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from holdfast.application.aio import AsyncCheckpointService
from holdfast.application.app import App
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import Url
from holdfast.execution.plan import Plan
from holdfast.execution.triggers import Triggers

Service = CheckpointService | AsyncCheckpointService
#: A URL, or a service that is open.
StoreLike = Url | CheckpointService | AsyncCheckpointService


class Declared(Protocol):
    """A workflow as it was declared."""

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def plan(self) -> Plan:
        """The graph, in layers."""

    @property
    def triggers(self) -> Triggers:
        """When a checkpoint is made."""

    @property
    def concurrency(self) -> int | None:
        """How many agents work at once at most."""

    @property
    def confidence_factor(self) -> float:
        """What confidence is multiplied by after a failed attempt."""

    @property
    def app(self) -> App | None:
        """Types, reducers and migrations that its states need."""

    @property
    def engines(self) -> Mapping[str, Any]:
        """Where agents run that name one of these."""
