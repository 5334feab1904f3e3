"""When a run makes a checkpoint: what may cause one, what a run asks for, and the watch that decides."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any, Self

from holdfast.domain.errors import ConfigError
from holdfast.execution.adaptive import AdaptiveInterval

#: Subject of a confidence that is nobody's in particular.
WORKFLOW = "workflow"
#: Memory pressure has fallen when it is this much below where it was high.
MEMORY_HYSTERESIS = 0.05


class Trigger(StrEnum):
    """What caused a checkpoint."""

    PHASE_COMPLETED = "phase_completed"
    SPECIALIST_FINISHED = "specialist_finished"
    EVALUATION_COMPLETED = "evaluation_completed"
    CONFIDENCE_THRESHOLD_CROSSED = "confidence_threshold_crossed"
    ERROR_ENCOUNTERED = "error_encountered"
    MEMORY_PRESSURE_HIGH = "memory_pressure_high"
    USER_REQUESTED = "user_requested"
    DEBUG_BREAKPOINT = "debug_breakpoint"
    BEFORE_RISKY_OPERATION = "before_risky_operation"
    #: So much time has passed that another checkpoint is worth its cost.
    ADAPTIVE = "adaptive"
    #: A fixed time has passed.
    INTERVAL = "interval"


#: Which reason is told where there are several: what somebody asked for, then what tells of danger, then what
#: was reached, then the mere passing of time.
BY_STRENGTH = (
    Trigger.BEFORE_RISKY_OPERATION,
    Trigger.USER_REQUESTED,
    Trigger.DEBUG_BREAKPOINT,
    Trigger.ERROR_ENCOUNTERED,
    Trigger.MEMORY_PRESSURE_HIGH,
    Trigger.CONFIDENCE_THRESHOLD_CROSSED,
    Trigger.EVALUATION_COMPLETED,
    Trigger.PHASE_COMPLETED,
    Trigger.SPECIALIST_FINISHED,
    Trigger.ADAPTIVE,
    Trigger.INTERVAL,
)
#: What the watch finds out by itself; nobody tells it.
_FOUND = frozenset(
    (
        Trigger.CONFIDENCE_THRESHOLD_CROSSED,
        Trigger.MEMORY_PRESSURE_HIGH,
        Trigger.ADAPTIVE,
        Trigger.INTERVAL,
    )
)


@dataclass(frozen=True, slots=True)
class Triggers:
    """Which triggers make a checkpoint.

    Attributes:
        phase_completed: after each layer of agents.
        specialist_finished: after each agent.
        evaluation_completed: after each judgement of an evaluator.
        confidence_threshold: when the confidence of an agent, or of the workflow, crosses this, up or down.
        error_encountered: when an agent fails.
        memory_pressure: when this share of the memory that may be used is in use.
        user_requested: when somebody asks for one.
        debug_breakpoint: at each breakpoint.
        before_risky_operation: before what an agent declares as risky.
        adaptive: when an agent finishes and so much time has passed that a checkpoint is worth its cost.
        interval_seconds: when an agent finishes and so much time has passed since the last checkpoint.
    """

    phase_completed: bool = True
    specialist_finished: bool = False
    evaluation_completed: bool = True
    confidence_threshold: float | None = 0.75
    error_encountered: bool = True
    memory_pressure: float | None = 0.9
    user_requested: bool = True
    debug_breakpoint: bool = True
    before_risky_operation: bool = True
    adaptive: bool = False
    interval_seconds: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            _check(field.name, getattr(self, field.name))

    def as_plain(self) -> dict[str, Any]:
        """Tell the settings, to be stored with a checkpoint."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Read settings that were stored; what is missing has its default.

        A name that is unknown here is passed over: a later version stored it, and its runs must not strand.

        Raises:
            ConfigError: a setting has a value that it cannot have.
        """
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in plain.items() if name in known})


#: The highest value of a setting that is a number above 0, and what to use; all others are true or false.
_NUMBERS = {
    "confidence_threshold": (1.0, "Use a number above 0 and up to 1, or None."),
    "memory_pressure": (1.0, "Use a share above 0 and up to 1, or None."),
    "interval_seconds": (sys.float_info.max, "Use seconds above 0, or None."),
}


def _check(name: str, value: object) -> None:
    highest, wish = _NUMBERS.get(name, (None, "Use true or false."))
    if highest is None:
        fits = isinstance(value, bool)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        fits = 0 < value <= highest
    else:
        fits = value is None
    if not fits:
        raise ConfigError(f"{name} is {value!r}", place=f"Triggers.{name}", hint=wish)


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened in a run, and may be the occasion of a checkpoint.

    Attributes:
        occasion: what happened, by the name of the trigger that it would be.
        subject: whose confidence is told: the agent's id, or `workflow`.
        confidence: how sure the subject is now, 0 to 1; None where it did not say.
    """

    occasion: Trigger
    subject: str = WORKFLOW
    confidence: float | None = None

    def __post_init__(self) -> None:
        if self.occasion in _FOUND:
            told = [trigger.value for trigger in Trigger if trigger not in _FOUND]
            raise ConfigError(
                f"{self.occasion.value} is found by the watch itself",
                place="Moment",
                hint=f"Tell one of {', '.join(told)}.",
            )


def agent_finished(agent: str, confidence: float | None = None) -> Moment:
    """Tell that an agent finished, and how sure it is of its result."""
    return Moment(Trigger.SPECIALIST_FINISHED, agent, confidence)


class TriggerWatch:
    """Decides at each moment of one run whether a checkpoint is due, and why. Thread-safe.

    Args:
        triggers: which of them count.
        clock: seconds that only grow.
        memory: tells the share of memory in use, or None.
        adaptive: what was learnt before about the interval; a new one by default.
        confidences: what each subject last said in an earlier process.
    """

    def __init__(
        self,
        triggers: Triggers,
        clock: Callable[[], float],
        memory: Callable[[], float | None],
        adaptive: AdaptiveInterval | None = None,
        confidences: Mapping[str, float] | None = None,
    ) -> None:
        self._triggers = triggers
        self._clock = clock
        self._memory = memory
        self._adaptive = adaptive or AdaptiveInterval()
        self._confidences = dict(confidences or {})
        self._lock = threading.Lock()
        self._memory_was_high = False
        #: Since when the next checkpoint is waited for, and until when the time that ran was counted.
        self._since = self._counted = clock()

    def due(self, moment: Moment) -> Trigger | None:
        """Tell the strongest reason to make a checkpoint now, None if there is none.

        For adaptive and interval, a checkpoint that is due counts as made at once, so that neighbours who
        finish while it is written do not ask for another; one that was not made is due an interval later.
        """
        # Outside the lock: a gauge may have files to read.
        share = None if self._triggers.memory_pressure is None else self._memory()
        with self._lock:
            now = self._clock()
            # Each is asked, for each remembers what it saw.
            reasons = {
                *self._told(moment),
                *self._crossed(moment),
                *self._pressed(share),
                *self._passed(moment, now),
            }
            if reasons:
                self._since = now
        return min(reasons, key=BY_STRENGTH.index, default=None)

    def checkpointed(self, cost_seconds: float) -> None:
        """Learn that a checkpoint was made just now, and what it cost."""
        with self._lock:
            self._since = self._count()
            self._adaptive.paid(cost_seconds)

    def failed(self, ran_seconds: float = 0.0) -> None:
        """Learn that the run lost what it did since its last checkpoint.

        An agent that is tried again is no such failure: what the others did is kept. A process that died is
        one, told by the process that goes on.

        Args:
            ran_seconds: how long the process that died had run after what was stored of it.
        """
        with self._lock:
            self._count()
            self._adaptive.ran(ran_seconds)
            self._adaptive.failed()

    def learnt(self) -> dict[str, Any]:
        """Tell what was learnt about the interval up to now, to be stored with the run."""
        with self._lock:
            self._count()
            return self._adaptive.as_plain()

    def _told(self, moment: Moment) -> set[Trigger]:
        return {moment.occasion} if getattr(self._triggers, moment.occasion.value) else set()

    def _crossed(self, moment: Moment) -> set[Trigger]:
        """Compare with what the same subject said before; the first word crosses nothing."""
        threshold, confidence = self._triggers.confidence_threshold, moment.confidence
        if threshold is None or confidence is None:
            return set()
        before = self._confidences.get(moment.subject)
        self._confidences[moment.subject] = confidence
        if before is None or (before >= threshold) == (confidence >= threshold):
            return set()
        return {Trigger.CONFIDENCE_THRESHOLD_CROSSED}

    def _pressed(self, share: float | None) -> set[Trigger]:
        """Fire once when pressure gets high, and not again before it has fallen clearly."""
        limit = self._triggers.memory_pressure
        if limit is None or share is None:
            return set()
        was_high = self._memory_was_high
        self._memory_was_high = share >= (limit * (1 - MEMORY_HYSTERESIS) if was_high else limit)
        return {Trigger.MEMORY_PRESSURE_HIGH} if self._memory_was_high and not was_high else set()

    def _passed(self, moment: Moment, now: float) -> set[Trigger]:
        """Ask the time only when an agent finishes: there is nothing new to keep in between."""
        if moment.occasion is not Trigger.SPECIALIST_FINISHED:
            return set()
        waited, interval = now - self._since, self._triggers.interval_seconds
        passed = set()
        if interval is not None and waited >= interval:
            passed.add(Trigger.INTERVAL)
        if self._triggers.adaptive:
            self._count()
            if waited >= self._adaptive.interval_seconds:
                passed.add(Trigger.ADAPTIVE)
        return passed

    def _count(self) -> float:
        """Count the time that ran, and tell what time it is."""
        now = self._clock()
        self._adaptive.ran(now - self._counted)
        self._counted = now
        return now
