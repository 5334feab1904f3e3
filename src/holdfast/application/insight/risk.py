"""Risk of failure of each live run: points, each with the words that it stands for. No more than that.

The points are a way to sort what deserves a look, by rules that are all on this page. They are no
probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from holdfast.application.insight.agents import AgentStats, agents_of
from holdfast.application.insight.attempts import Attempt, End, attempts_of
from holdfast.application.insight.following import AT_WORK
from holdfast.application.insight.paths import rounds_in, way_of
from holdfast.application.insight.recoveries import recovered
from holdfast.application.insight.sample import (
    WORKFLOWS_MAX,
    Looked,
    Sample,
    amount,
    take_sample,
)
from holdfast.application.kit import Kit
from holdfast.application.recovery.owners import is_dead
from holdfast.domain.record import Lease
from holdfast.domain.statistics import LEAST_SAMPLES, robust_line
from holdfast.domain.time import parse_timestamp, timestamp_text

#: A run counts as live until it was quiet for so long; after that it is told as asleep.
LIVE_DAYS = 30
MEDIUM_POINTS, HIGH_POINTS, POINTS_MAX = 20, 50, 100
_STATES_MAX = 50
#: Runs that are over, and runs that rest until somebody does something: being quiet is no sign there.
_OVER = frozenset({"completed", "cancelled"})
_RESTING = frozenset({"paused", "waiting", "stopped", "failed"})

_QUIET_FACTOR, _VERY_QUIET_FACTOR = 3.0, 10.0
#: Silence shorter than this means nothing.
_QUIET_SECONDS = 60.0
#: An agent fails often from this share on, told by at least so many attempts.
_FAILS_OFTEN = 0.25
_JUDGED_LEAST = 4
#: From this share of the largest state that may be stored on.
_LARGE_SHARE = 0.5
_CHECKPOINTS_AHEAD = 50
_ROUNDS_LEAST, _ROUNDS_FACTOR = 5, 2.0
_LOW_CONFIDENCE = 0.5


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: its points, a stable name for programs, and words for people."""

    points: int
    code: str
    words: str


@dataclass(frozen=True, slots=True)
class Risk:
    """How likely a run needs somebody.

    Attributes:
        points: 0 to 100, the sum of its reasons.
        level: `low`, `medium` from 20 points on, `high` from 50 on.
        reasons: those with most points first; empty where nothing speaks against the run.
    """

    workflow_id: str
    status: str
    points: int
    level: str
    last_written: str | None
    agents: tuple[str, ...]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True)
class Risks:
    """Live runs, those at the highest risk first.

    Attributes:
        live: how many there are; `asleep` did not end either, and were quiet for a month.
    """

    looked_at: int
    total: int
    live: int
    asleep: int
    runs: tuple[Risk, ...]


@dataclass(frozen=True, slots=True)
class _Case:
    """Everything that the rules look at."""

    looked: Looked
    attempts: list[Attempt]
    status: str
    lease: Lease | None
    now: datetime
    #: How every agent did in all runs, this one included.
    agents: Mapping[str, AgentStats]
    #: How many rounds are usual, over the other runs.
    usual_rounds: float
    limit_bytes: int

    @property
    def at_work(self) -> list[Attempt]:
        return [one for one in self.attempts if one.end is End.OPEN]

    @property
    def last_of_each(self) -> list[Attempt]:
        """The last attempt of each step."""
        return list({one.step_id: one for one in self.attempts}.values())


def risks(kit: Kit, workflow_id: str | None = None, limit: int = WORKFLOWS_MAX) -> Risks:
    """Judge the live runs among the newest workflows, or one beside them."""
    return risks_of(kit, take_sample(kit, workflow_id, limit), workflow_id)


def risks_of(kit: Kit, sample: Sample, workflow_id: str | None = None) -> Risks:
    """Judge the live runs of a sample; with a name, only that one."""
    known = {one.agent: one for one in agents_of(sample)}
    rounds = {one.workflow_id: _rounds(one) for one in sample.looked}
    runs: list[Risk] = []
    asleep = 0
    for looked in sample.only(workflow_id).looked:
        if looked.status in _OVER or looked.last_written is None:
            continue
        if sample.now - looked.last_written > timedelta(days=LIVE_DAYS):
            asleep += 1
            continue
        others = [count for name, count in rounds.items() if name != looked.workflow_id and count > 1]
        case = _Case(
            looked,
            attempts_of(looked),
            looked.status,
            kit.store.lease(looked.workflow_id),
            sample.now,
            known,
            median(others) if others else 0.0,
            kit.limit_bytes,
        )
        runs.append(_judged(case))
    runs.sort(key=lambda one: (-one.points, one.workflow_id))
    return Risks(len(sample.looked), sample.total, len(runs), asleep, tuple(runs))


def _judged(case: _Case) -> Risk:
    reasons = [reason for rule in _RULES for reason in rule(case)]
    reasons.sort(key=lambda one: -one.points)
    points = min(sum(one.points for one in reasons), POINTS_MAX)
    level = "high" if points >= HIGH_POINTS else "medium" if points >= MEDIUM_POINTS else "low"
    last = case.looked.last_written
    return Risk(
        case.looked.workflow_id,
        case.status,
        points,
        level,
        timestamp_text(last) if last else None,
        tuple(sorted({one.agent for one in case.at_work})),
        tuple(reasons),
    )


def _failed(case: _Case) -> Iterator[Reason]:
    if case.status == "failed":
        yield Reason(50, "failed", "the run has failed and waits to be resumed")
        return
    for attempt in case.last_of_each:
        if attempt.end is End.GAVE_UP:
            yield Reason(40, "gave_up", f"{attempt.step_id} failed and is not tried again")


def _owner(case: _Case) -> Iterator[Reason]:
    lease = case.lease
    if lease is None:
        return
    if is_dead(lease.owner):
        yield Reason(40, "owner_gone", "the process that ran it is gone, and did not give it back")
    elif not lease.is_live:
        seconds = (case.now - parse_timestamp(lease.expires_at)).total_seconds()
        yield Reason(30, "lease_expired", f"its lease expired {duration_text(seconds)} ago")


def _quiet(case: _Case) -> Iterator[Reason]:
    """Compare how long it has been quiet with how long it usually is between two events."""
    moments = [event.timestamp for event in case.looked.events]
    last = case.looked.last_written
    if case.status in _RESTING or len(moments) <= LEAST_SAMPLES or last is None:
        return
    usual = median((after - before).total_seconds() for before, after in pairwise(moments))
    longest_work = max((_usual_seconds(case, one.agent) for one in case.at_work), default=0.0)
    usual, quiet = max(usual, longest_work), (case.now - last).total_seconds()
    if quiet < max(_QUIET_SECONDS, usual * _QUIET_FACTOR):
        return
    points = 30 if quiet >= usual * _VERY_QUIET_FACTOR else 20
    words = f"quiet for {duration_text(quiet)}; {duration_text(usual)} is usual"
    yield Reason(points, "quiet", words)


def _usual_seconds(case: _Case, agent: str) -> float:
    known = case.agents.get(agent)
    return (known.p95_seconds or 0.0) if known else 0.0


def _retries(case: _Case) -> Iterator[Reason]:
    for attempt in case.last_of_each:
        used = attempt.number if attempt.end is End.FAILED else attempt.number - 1
        if attempt.end not in (End.OPEN, End.FAILED) or not used:
            continue
        words = f"{attempt.step_id} is at attempt {used + 1}; {used} before gave no result"
        yield Reason(min(10 * used, 30), "retries", words)
    newest = case.looked.newest
    if newest is not None and newest.retry_count:
        words = f"its newest checkpoint was resumed in vain {_times(newest.retry_count)}"
        yield Reason(min(10 * newest.retry_count, 30), "checkpoint_retries", words)


def _failing_agents(case: _Case) -> Iterator[Reason]:
    for agent in sorted({one.agent for one in case.at_work}):
        known = case.agents.get(agent)
        judged = known.completed + known.failed if known else 0
        if known and judged >= _JUDGED_LEAST and known.failure_rate >= _FAILS_OFTEN:
            words = f"{agent} is at work, and {known.failure_rate:.0%} of its {judged} attempts failed"
            yield Reason(round(30 * known.failure_rate), "failing_agent", words)


def _crashes(case: _Case) -> Iterator[Reason]:
    crashes = sum(one.after == AT_WORK for one in recovered(case.looked))
    if crashes:
        words = f"it has come back {_times(crashes)} from a process that died"
        yield Reason(min(10 * crashes, 20), "crashes", words)


def _state(case: _Case) -> Iterator[Reason]:
    """Look at how near the state is to what may be stored, and whether it is on its way there."""
    kept = [entry for entry in case.looked.entries if not entry.pruned][:_STATES_MAX]
    if not kept:
        return
    share = kept[0].state_bytes / case.limit_bytes
    if share >= _LARGE_SHARE:
        yield Reason(25, "large_state", f"its state is {share:.0%} of the largest that can be stored")
        return
    line = robust_line([(entry.sequence, entry.state_bytes) for entry in kept])
    if line is None or len(kept) < LEAST_SAMPLES or line.slope <= 0:
        return
    left = (case.limit_bytes - kept[0].state_bytes) / line.slope
    if left <= _CHECKPOINTS_AHEAD:
        words = f"its state grows by {line.slope:,.0f} bytes a checkpoint: too large in {left:.0f} more"
        yield Reason(15, "growing_state", words)


def _loops(case: _Case) -> Iterator[Reason]:
    turned = _rounds(case.looked)
    if turned >= max(_ROUNDS_LEAST, case.usual_rounds * _ROUNDS_FACTOR):
        usual = f"; {case.usual_rounds:g} are usual" if case.usual_rounds else ""
        yield Reason(15, "loop", f"it goes through the same agents for the {turned}th time{usual}")


def _confidence(case: _Case) -> Iterator[Reason]:
    for event in reversed(case.looked.events):
        told = amount(event.data.get("confidence"))
        if told is not None:
            if told < _LOW_CONFIDENCE:
                words = f"{event.agent or 'the last agent'} is only {told:.0%} sure of its result"
                yield Reason(10, "confidence", words)
            return


_RULES: tuple[Callable[[_Case], Iterator[Reason]], ...] = (
    _failed,
    _owner,
    _quiet,
    _retries,
    _failing_agents,
    _crashes,
    _state,
    _loops,
    _confidence,
)


def _rounds(looked: Looked) -> int:
    return max(rounds_in(way_of(looked)).values(), default=1)


def _times(count: int) -> str:
    return "once" if count == 1 else "twice" if count == 2 else f"{count} times"


def duration_text(seconds: float) -> str:
    """Write a duration for people: `4.2 ms`, `90 s`, `25 min`, `3.2 h`, `4.0 days`."""
    if seconds < 1:
        return f"{seconds * 1000:.1f} ms" if seconds < 0.01 else f"{seconds * 1000:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    if seconds < 2 * 86400:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
