"""What is unlike the rest: checkpoints that grew or shrank at once, and steps that took far longer, or less.

Compared is by medians, on a logarithmic scale, from eight values on. What hardly matters is not told, however
unusual it is: a step of two milliseconds among steps of one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from holdfast.application.insight.attempts import Attempt, End, attempts_of
from holdfast.application.insight.sample import WORKFLOWS_MAX, Looked, Sample, take_sample
from holdfast.application.kit import Kit
from holdfast.domain.record import Entry
from holdfast.domain.statistics import LEAST_SAMPLES, outliers
from holdfast.domain.time import timestamp_text

#: A change of size has to be so large, and by this factor.
LEAST_BYTES = 64 * 1024
LEAST_SIZE_FACTOR = 1.5
#: A duration has to be off by so much, and by this factor.
LEAST_SECONDS = 1.0
LEAST_TIME_FACTOR = 2.0
#: A logarithm needs something to be taken of.
_TICK_SECONDS = 1e-3
_TOLD_MAX = 100


@dataclass(frozen=True, slots=True)
class Anomaly:
    """One thing that is unlike the rest.

    Attributes:
        kind: `size` or `duration`.
        place: the checkpoint (`WF@42`) or the step.
        value, usual: bytes or seconds; of a size the one before is what is usual.
        score: how far out it is, in deviations; negative where it is less than usual.
        reason: what is unusual about it, in words.
    """

    kind: str
    workflow_id: str
    place: str
    agent: str | None
    at: str
    value: float
    usual: float
    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class Anomalies:
    """What was found, the furthest out first.

    Attributes:
        compared: how many values were compared with others of their kind.
        least: with fewer values of a kind nothing is said about them.
        left_off: how many further ones there are.
    """

    looked_at: int
    total: int
    compared: int
    least: int
    anomalies: tuple[Anomaly, ...]
    left_off: int


def anomalies(kit: Kit, workflow_id: str | None = None, limit: int = WORKFLOWS_MAX) -> Anomalies:
    """Find what is unlike the rest in the newest workflows, or in one beside them."""
    return anomalies_of(take_sample(kit, workflow_id, limit), workflow_id)


def anomalies_of(sample: Sample, workflow_id: str | None = None) -> Anomalies:
    """Find what is unlike the rest in a sample; with a name, only what is in that workflow is told."""
    found: list[Anomaly] = []
    compared = 0
    for looked in sample.only(workflow_id).looked:
        steps = _size_steps(looked)
        compared += len(steps) if len(steps) >= LEAST_SAMPLES else 0
        found += _odd_sizes(looked.workflow_id, steps)
    by_agent: defaultdict[str, list[Attempt]] = defaultdict(list)
    for attempt in (one for looked in sample.looked for one in attempts_of(looked)):
        if attempt.end is End.COMPLETED and attempt.seconds is not None:
            by_agent[attempt.agent].append(attempt)
    for attempts in by_agent.values():
        compared += len(attempts) if len(attempts) >= LEAST_SAMPLES else 0
        found += (one for one in _odd_times(attempts) if workflow_id in (None, one.workflow_id))
    found.sort(key=lambda one: (-abs(one.score), one.workflow_id, one.place))
    left_off = max(len(found) - _TOLD_MAX, 0)
    told = tuple(found[:_TOLD_MAX])
    return Anomalies(len(sample.looked), sample.total, compared, LEAST_SAMPLES, told, left_off)


def _size_steps(looked: Looked) -> list[tuple[Entry, Entry]]:
    """Pair each checkpoint with the one before it."""
    return [(before, after) for before, after in pairwise(reversed(looked.entries)) if before.state_bytes]


def _odd_sizes(workflow_id: str, steps: list[tuple[Entry, Entry]]) -> Iterator[Anomaly]:
    growth = [math.log(max(after.state_bytes, 1) / before.state_bytes) for before, after in steps]
    for odd in outliers(growth):
        before, after = steps[odd.index]
        factor = math.exp(abs(odd.value))
        if abs(after.state_bytes - before.state_bytes) < LEAST_BYTES or factor < LEAST_SIZE_FACTOR:
            continue
        verb = "grew" if odd.value > 0 else "shrank"
        usual = math.expm1(odd.usual)
        reason = (
            f"the state {verb} from {before.state_bytes:,} to {after.state_bytes:,} bytes in one step "
            f"({factor:.1f} times); {usual:+.1%} is usual here"
        )
        yield Anomaly(
            "size",
            workflow_id,
            f"{workflow_id}@{after.sequence}",
            after.agent,
            after.timestamp,
            after.state_bytes,
            before.state_bytes,
            odd.score,
            reason,
        )


def _odd_times(attempts: list[Attempt]) -> Iterator[Anomaly]:
    taken = [max(one.seconds or 0.0, _TICK_SECONDS) for one in attempts]
    for odd in outliers([math.log(seconds) for seconds in taken]):
        attempt, seconds, usual = attempts[odd.index], taken[odd.index], math.exp(odd.usual)
        factor = max(seconds / usual, usual / seconds)
        if abs(seconds - usual) < LEAST_SECONDS or factor < LEAST_TIME_FACTOR:
            continue
        word = "longer" if seconds > usual else "shorter"
        yield Anomaly(
            "duration",
            attempt.workflow_id,
            attempt.step_id,
            attempt.agent,
            timestamp_text(attempt.ended or attempt.began),
            seconds,
            usual,
            odd.score,
            f"{attempt.agent} took {seconds:.1f} s, {factor:.1f} times {word} than the usual {usual:.1f} s "
            f"of {len(attempts)} results",
        )
