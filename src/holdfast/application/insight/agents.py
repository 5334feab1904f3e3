"""Agents over many runs: how long they take, how often they fail, and what they use."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.application.insight.attempts import Attempt, End, attempts_of
from holdfast.application.insight.sample import WORKFLOWS_MAX, Sample, take_sample
from holdfast.application.kit import Kit
from holdfast.domain.statistics import spread

_FAILURES = frozenset({End.FAILED, End.GAVE_UP})


@dataclass(frozen=True, slots=True)
class AgentStats:
    """One agent over the runs that were looked at.

    Attributes:
        attempts: how often it began.
        failed: attempts that ended with an error; `gave_up` of them were not tried again.
        lost: attempts whose process died.
        retries: attempts that were not the first of their step.
        failure_rate: the share of attempts that ended, and ended with an error.
        errors: how often each type of error ended an attempt.
        used: what it said that it used, added up by name: tokens, cost_usd.
    """

    agent: str
    workflows: int
    attempts: int
    completed: int
    failed: int
    gave_up: int
    lost: int
    retries: int
    failure_rate: float
    median_seconds: float | None
    p95_seconds: float | None
    max_seconds: float | None
    total_seconds: float
    errors: dict[str, int]
    used: dict[str, float]


def agents(kit: Kit, workflow_id: str | None = None, limit: int = WORKFLOWS_MAX) -> list[AgentStats]:
    """Tell how the agents of the newest workflows did, or those of one, whoever took most time first."""
    chosen = 0 if workflow_id else limit
    return agents_of(take_sample(kit, workflow_id, chosen))


def agents_of(sample: Sample) -> list[AgentStats]:
    """Tell how the agents of a sample did, whoever took most time first."""
    by_agent: defaultdict[str, list[Attempt]] = defaultdict(list)
    for looked in sample.looked:
        for attempt in attempts_of(looked):
            by_agent[attempt.agent].append(attempt)
    found = [_stats(agent, attempts) for agent, attempts in by_agent.items()]
    return sorted(found, key=lambda one: (-one.total_seconds, one.agent))


def most_failing(found: Iterable[AgentStats]) -> list[AgentStats]:
    """Order agents that failed, whoever fails most often first."""
    failing = [one for one in found if one.failed]
    return sorted(failing, key=lambda one: (-one.failure_rate, -one.failed, one.agent))


def _stats(agent: str, attempts: list[Attempt]) -> AgentStats:
    ends = Counter(attempt.end for attempt in attempts)
    failed = sum(ends[end] for end in _FAILURES)
    judged = failed + ends[End.COMPLETED]
    taken = [one.seconds for one in attempts if one.end is End.COMPLETED and one.seconds is not None]
    times = spread(taken)
    errors = Counter(one.error for one in attempts if one.end in _FAILURES and one.error is not None)
    used: defaultdict[str, float] = defaultdict(float)
    for attempt in attempts:
        for name, value in (attempt.spent or {}).items():
            used[name] += value
    return AgentStats(
        agent,
        len({one.workflow_id for one in attempts}),
        len(attempts),
        ends[End.COMPLETED],
        failed,
        ends[End.GAVE_UP],
        ends[End.LOST],
        sum(one.number > 1 for one in attempts),
        failed / judged if judged else 0.0,
        times.median if times else None,
        times.p95 if times else None,
        times.largest if times else None,
        times.total if times else 0.0,
        dict(errors.most_common()),
        dict(sorted(used.items())),
    )
