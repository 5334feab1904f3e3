"""How often checkpoints are made, what they cost against what they saved, and how often they should be made.

The executor measures what a checkpoint costs and counts the crashes it comes back from; both are in the
journal. What a workflow without the executor does not tell is assumed, and said to be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from holdfast.application.insight.attempts import Attempt, End, attempts_of
from holdfast.application.insight.sample import (
    WORKFLOWS_MAX,
    Looked,
    Sample,
    amount,
    is_recovery,
    take_sample,
)
from holdfast.application.kit import Kit
from holdfast.domain.checkpoint_interval import (
    PRIOR_COST_SECONDS,
    mtbf_seconds,
    recommended_seconds,
    young_seconds,
)
from holdfast.domain.time import parse_timestamp

#: An interval this many times too long or too short is worth a word: it loses a quarter more than need be.
_FAR_FACTOR = 2.0
#: Checkpoints that take no more of the time than this are not worth making fewer of.
_CHEAP_SHARE = 0.01


@dataclass(frozen=True, slots=True)
class IntervalAdvice:
    """Checkpoints of one workflow, or of all that were looked at.

    Attributes:
        workflow_id: None for all together.
        checkpoints: how many were made, those that were removed since included.
        median_seconds: the usual time between two; None with fewer than two.
        cost_seconds: what one costs; `is_cost_measured` says whether that is known or assumed.
        failures: how often a run lost what was not yet stored.
        ran_seconds: how long runs were watched for that.
        mtbf_seconds: the time between failures, with one failure assumed beforehand.
        young_seconds: the square root of twice cost and time between failures.
        recommended_seconds: Daly's interval, within a second and an hour.
        spent_seconds: what all checkpoints cost together, and what share of the running time that is.
        saved_seconds: finished work of agents that recoveries did not have to repeat.
        lost_seconds: work of agents that was under way when the process died.
        advice: what to do, in words.
    """

    workflow_id: str | None
    checkpoints: int
    median_seconds: float | None
    cost_seconds: float
    is_cost_measured: bool
    failures: int
    ran_seconds: float
    mtbf_seconds: float
    young_seconds: float
    recommended_seconds: float
    spent_seconds: float
    spent_share: float | None
    saved_seconds: float
    lost_seconds: float
    advice: str


@dataclass(frozen=True, slots=True)
class Intervals:
    """Advice for all workflows together, and for each."""

    looked_at: int
    total: int
    overall: IntervalAdvice
    workflows: tuple[IntervalAdvice, ...]


@dataclass(frozen=True, slots=True)
class _Measured:
    """What is known of one workflow."""

    checkpoints: int
    gaps: tuple[float, ...]
    cost_seconds: float | None
    failures: int
    ran_seconds: float
    saved_seconds: float
    lost_seconds: float


def intervals(kit: Kit, workflow_id: str | None = None, limit: int = WORKFLOWS_MAX) -> Intervals:
    """Tell how often the newest workflows, or one, make checkpoints, and how often they should."""
    return intervals_of(take_sample(kit, workflow_id, 0 if workflow_id else limit))


def intervals_of(sample: Sample) -> Intervals:
    """Tell how often the workflows of a sample make checkpoints, and how often they should."""
    measured = [(one.workflow_id, _measured(one)) for one in sample.looked]
    each = [advise(name, [one]) for name, one in measured if one.checkpoints]
    overall = advise(None, [one for _, one in measured])
    return Intervals(len(sample.looked), sample.total, overall, tuple(each))


def advise(workflow_id: str | None, measured: Sequence[_Measured]) -> IntervalAdvice:
    """Put together what was measured, and recommend an interval."""
    costs = [one.cost_seconds for one in measured if one.cost_seconds is not None]
    cost = median(costs) if costs else PRIOR_COST_SECONDS
    gaps = [gap for one in measured for gap in one.gaps]
    usual = median(gaps) if gaps else None
    failures, ran = sum(one.failures for one in measured), math.fsum(one.ran_seconds for one in measured)
    between = mtbf_seconds(ran, failures)
    best = recommended_seconds(cost, between)
    checkpoints = sum(one.checkpoints for one in measured)
    share = checkpoints * cost / ran if ran and costs else None
    return IntervalAdvice(
        workflow_id,
        checkpoints,
        usual,
        cost,
        bool(costs),
        failures,
        ran,
        between,
        young_seconds(cost, between),
        best,
        checkpoints * cost,
        share,
        math.fsum(one.saved_seconds for one in measured),
        math.fsum(one.lost_seconds for one in measured),
        _advice(usual, best, share),
    )


def _advice(usual_seconds: float | None, best_seconds: float, share: float | None) -> str:
    if usual_seconds is None:
        return "fewer than two checkpoints: nothing to compare"
    basis = ", if a checkpoint costs what is assumed" if share is None else ""
    if usual_seconds > best_seconds * _FAR_FACTOR:
        return f"make them more often: a failure loses more than need be{basis}"
    if usual_seconds >= best_seconds / _FAR_FACTOR:
        return f"about right{basis}"
    if share is not None and share < _CHEAP_SHARE:
        return f"more often than needed, and cheap: they take {share:.2%} of the time"
    return (
        f"less often would do{basis}"
        if share is None
        else f"less often would do: they take {share:.0%} of the time"
    )


def _measured(looked: Looked) -> _Measured:
    moments = [parse_timestamp(entry.timestamp) for entry in reversed(looked.entries)]
    gaps = tuple(max((after - before).total_seconds(), 0.0) for before, after in pairwise(moments))
    learnt = _learnt(looked)
    recoveries = sum(map(is_recovery, looked.events))
    saved, lost = _saved_and_lost(looked, attempts_of(looked))
    failures, ran = amount(learnt.get("failures")), amount(learnt.get("ran_seconds"))
    return _Measured(
        len(moments),
        gaps,
        amount(learnt.get("cost_seconds")),
        recoveries if failures is None else int(failures),
        _span_seconds(looked) if ran is None else ran,
        saved,
        lost,
    )


def _learnt(looked: Looked) -> Mapping[str, object]:
    """Answer what the executor learnt last."""
    for event in reversed(looked.events):
        learnt = event.data.get("learnt")
        if isinstance(learnt, Mapping):
            return learnt
    return {}


def _span_seconds(looked: Looked) -> float:
    if not looked.events:
        return 0.0
    return max((looked.events[-1].timestamp - looked.events[0].timestamp).total_seconds(), 0.0)


def _saved_and_lost(looked: Looked, attempts: Sequence[Attempt]) -> tuple[float, float]:
    """Add up what was done before each recovery, and what was under way when the process died."""
    saved = 0.0
    for event in looked.events:
        if is_recovery(event):
            done = [one.seconds or 0.0 for one in attempts if _is_done_before(one, event.seq)]
            saved += math.fsum(done)
    lost = [
        max((one.ended - one.began).total_seconds(), 0.0)
        for one in attempts
        if one.end is End.LOST and one.ended is not None
    ]
    return saved, math.fsum(lost)


def _is_done_before(attempt: Attempt, seq: int) -> bool:
    return attempt.end is End.COMPLETED and attempt.end_seq < seq
