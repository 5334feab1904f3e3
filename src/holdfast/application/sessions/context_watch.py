"""Watching a model's context window: when to hand off, with what, and whom to tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.domain.errors import InvalidStateError
from holdfast.domain.session_context import AgentLike, check_usage
from holdfast.domain.session_record import HandOff

#: Room enough is left to write a summary.
DEFAULT_THRESHOLD = 0.8


@dataclass(frozen=True, slots=True)
class Leaving:
    """What a session leaves when it has to end: as `hand_off` takes it."""

    summary: str | None = None
    payload: Mapping[str, Any] | None = None
    target_agent: AgentLike | None = None


#: Asked, with the session and how full its window is, for what to leave: all of it, or the summary alone.
Summarize = Callable[[str, float], "Leaving | str | None"]


@dataclass(frozen=True, slots=True)
class ContextWatch:
    """What to do when a context window fills.

    Attributes:
        threshold: from this fraction on the session is handed off.
        summarize: says what to leave; without it the states of the workflows speak for themselves.
        on_hand_off: told of the hand-off once it is durable: starts the next window, say.
    """

    threshold: float = DEFAULT_THRESHOLD
    summarize: Summarize | None = field(default=None, repr=False)
    on_hand_off: Callable[[HandOff], object] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_usage(self.threshold)

    def prepare(self, session_id: str, fraction: float) -> Leaving:
        """Ask what to leave."""
        left = self.summarize(session_id, fraction) if self.summarize is not None else None
        if isinstance(left, Leaving):
            return left
        if left is None or isinstance(left, str):
            return Leaving(left)
        raise InvalidStateError(
            f"a {type(left).__name__} is nothing to leave", hint="Answer a summary, a Leaving, or None."
        )

    def tell(self, handed: HandOff) -> None:
        """Say that the session was handed off."""
        if self.on_hand_off is not None:
            self.on_hand_off(handed)
