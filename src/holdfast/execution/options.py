"""How one run is carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.domain.errors import ConfigError
from holdfast.domain.reducers import check_confidence
from holdfast.execution.faults import shown

#: Told what happens: `checkpoint_saved`, `agent_started` and so on, with the particulars.
Subscriber = Callable[[str, Mapping[str, Any]], None]
#: Answers the confidence after a failed attempt: given the one before, the attempt and the error.
ConfidenceRule = Callable[[float, int, BaseException], float]

LEASE_SECONDS = 30.0


def lowering(rule: ConfidenceRule | None, factor: float, warn: Callable[[str], None]) -> ConfidenceRule:
    """Answer a rule that always holds: where the one that was given fails, the factor counts."""

    def lowered(before: float, attempt: int, error: BaseException) -> float:
        if rule is None:
            return before * factor
        try:
            after = rule(before, attempt, error)
            check_confidence(after, "confidence_rule")
        except Exception as fault:
            warn(f"the rule for confidence failed, and the factor was taken: {shown(fault)}")
            return before * factor
        return before * factor if after is None else float(after)

    return lowered


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How one run is carried out.

    Attributes:
        strict: refuse to go on with a workflow whose graph has changed, instead of keeping what fits.
        subscribers: are told what happens while it happens.
        waits: wait for approvals in this process; else the run ends as `waiting` once the rest of its layer
            is done, and is resumed when the answer is there.
        lease_seconds: how long others wait at most after this machine died.
        poll_seconds: how often requests from outside are looked for.
        handles_signals: SIGTERM and SIGINT end the run with a final checkpoint, and then go to the handler
            that was there before; only where the run has the main thread.
        session_id: the session that the run is told in.
        confidence_rule: replaces the factor that confidence is lowered by.
        renamed: names of agents of before, with those of now: their results are kept.
        config: told to the agents, and kept in the checkpoints; a run that is resumed has that of its
            beginning, and what is given here over it.
    """

    strict: bool = False
    subscribers: tuple[Subscriber, ...] = ()
    waits: bool = True
    lease_seconds: float = LEASE_SECONDS
    poll_seconds: float = 0.25
    handles_signals: bool = True
    session_id: str | None = None
    confidence_rule: ConfidenceRule | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.lease_seconds > 0 and self.poll_seconds > 0):
            raise ConfigError(
                "times have to be positive",
                place="RunOptions",
                hint="Give lease_seconds and poll_seconds above 0.",
            )

    def told(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Answer what agents are told: as the run of that state began, and what was given since."""
        begun = fields.get("execution_config")
        config = begun.get("config") if isinstance(begun, Mapping) else None
        return {**(config if isinstance(config, Mapping) else {}), **self.config}
