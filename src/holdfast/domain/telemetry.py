"""What is told of a running program to whoever counts, measures and traces it, and how it is told.

Names of workflows and checkpoints are never counted by: each would be a series of its own for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

#: What a span may be described by.
Attributes = Mapping[str, str | int | float | bool]


class SaveOutcome(StrEnum):
    """What became of a checkpoint that was asked for."""

    OK = "ok"
    #: The state was that of the last checkpoint, which stands for this one too.
    UNCHANGED = "unchanged"
    #: It waits in memory for a store that can be written again.
    HELD = "held"
    #: Another writer was first, or has the workflow for itself.
    CONFLICT = "conflict"
    FAILED = "failed"


class RecoveryOutcome(StrEnum):
    """How a recovery ended."""

    OK = "ok"
    #: An older checkpoint stands in for one that cannot be used.
    FALLBACK = "fallback"
    #: Nothing was done: somebody has the workflow, or what was asked for cannot be.
    REFUSED = "refused"
    FAILED = "failed"


class FoundBy(StrEnum):
    """Who came across bytes that are not what was committed."""

    VALIDATION = "validation"
    RESTORE = "restore"
    RECOVERY = "recovery"
    TRAIL = "trail"


@dataclass(frozen=True, slots=True)
class Saved:
    """One checkpoint that was asked for.

    Attributes:
        encode_seconds: reading the state, finding what changed, encoding and compressing it.
        queue_seconds: waiting for the commits before it; None where it never came to be written.
        write_seconds: in the store, until it was durable; shared by all that were written together.
        is_whole: whether it holds the complete state, and not just what changed.
        raw_bytes: the whole state as packed; 0 where nothing was made.
        stored_bytes: what was written of it, compressed.
        made_at: when it was made, in seconds since 1970; None where it was not.
        trace_id: of the span it belongs to; empty where nobody traces.
    """

    outcome: SaveOutcome
    encode_seconds: float
    queue_seconds: float | None = None
    write_seconds: float | None = None
    is_whole: bool = False
    raw_bytes: int = 0
    stored_bytes: int = 0
    made_at: float | None = None
    trace_id: str = ""


@dataclass(frozen=True, slots=True)
class Recovered:
    """One recovery.

    Attributes:
        lost_steps: checkpoints that were passed over, and events that could not be read.
        quarantined: how many pieces were set aside as evidence.
    """

    outcome: RecoveryOutcome
    seconds: float
    lost_steps: int = 0
    quarantined: int = 0
    trace_id: str = ""


class Observer(Protocol):
    """Counts what happened. It is told afterwards, in any thread; it must neither raise nor take long."""

    def saved(self, saved: Saved) -> None:
        """Count a checkpoint that was asked for, whatever became of it."""

    def recovered(self, recovered: Recovered) -> None:
        """Count a recovery, however it ended."""

    def invalid(self, found_by: FoundBy) -> None:
        """Count that stored bytes are not what was committed."""

    def pruned(self, checkpoints: int, freed_bytes: int, policy: str) -> None:
        """Count what was removed: by `retention`, or as was `asked`."""

    def waited(self, seconds: float) -> None:
        """Count that somebody had to wait for another's work on the same workflow."""


class Span(Protocol):
    """One piece of work on the time line of a program; ended once, in any thread."""

    @property
    def trace_id(self) -> str:
        """The trace it belongs to, in hexadecimal digits; empty where nobody collects it."""

    @property
    def traceparent(self) -> str:
        """Its name for others, as W3C Trace Context writes it; empty where nobody collects it."""

    def note(self, attributes: Attributes) -> None:
        """Describe it further."""

    def link(self, traceparent: str) -> None:
        """Say which earlier span it goes on with; what is no name of one is left out."""

    def end(self, problem: BaseException | None = None) -> None:
        """End it, with the kind of what went wrong; never with its text, which may hold anything."""


class Tracing(Protocol):
    """Makes spans."""

    #: Whether spans may be described in the words of drafts, which may change.
    is_drafting: bool

    def begin(self, name: str, attributes: Attributes) -> Span:
        """Begin a span under the one that is current here, without becoming that itself."""

    def within(self, name: str, attributes: Attributes) -> AbstractContextManager[Span]:
        """Have a span that is the current one of the block, and ends with it."""
