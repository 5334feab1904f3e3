"""What travels between a run and its workers: an errand there, and how it went back.

Results do not travel: the worker records them in the journal of the step, and the run reads them there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from holdfast.execution.engines.remote_port import LEASE_SECONDS, POLL_SECONDS
from holdfast.execution.frame import Frame
from holdfast.execution.plan import AgentFunction


@dataclass(frozen=True, slots=True)
class Errand:
    """One attempt of one agent, with everything that a worker needs for it."""

    id: str
    #: Where the journal of the step is: the store, and the workflow that stands for the step.
    store: str
    child_id: str
    #: Of the run that sent it.
    workflow_id: str
    frame: Frame
    function: AgentFunction
    takes_item: bool
    inputs: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    #: Triggers that make a checkpoint when the agent asks for one.
    triggers: frozenset[str] = frozenset()
    lease_seconds: float = LEASE_SECONDS
    poll_seconds: float = POLL_SECONDS
    #: Where silence ends the attempt: how often a heartbeat is recorded.
    beat_seconds: float | None = None


class Ending(StrEnum):
    """How an errand went."""

    #: The result is in the journal of the step.
    DONE = "done"
    FAILED = "failed"
    #: Nothing may be done there: the step belongs to somebody else, or a worker that is gone had begun it.
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an errand went, and why."""

    ending: Ending
    reason: str = ""
    error: Exception | None = None
