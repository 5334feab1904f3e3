"""Ways that runs take through their agents, and the circles they turn in."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from holdfast.application.insight.attempts import attempts_of
from holdfast.application.insight.sample import WORKFLOWS_MAX, Looked, Sample, take_sample
from holdfast.application.kit import Kit

#: Longer circles are not looked for, and a longer way is cut.
_CIRCLE_MAX = 20
_WAY_MAX = 1_000
#: So many different ways, circles and steps between agents are told.
SHOWN_MAX = 50
_ROUND = re.compile(r"#(\d+)$")
_FAILED = frozenset({"failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Path:
    """A way through the agents, and the runs that took it. What was repeated at once counts once."""

    agents: tuple[str, ...]
    runs: int
    completed: int
    failed: int
    unfinished: int
    share: float


@dataclass(frozen=True, slots=True)
class Loop:
    """Agents that followed each other again and again.

    Attributes:
        runs: how many runs went through it more than once.
        median_rounds, max_rounds: how often, in those.
    """

    agents: tuple[str, ...]
    runs: int
    median_rounds: float
    max_rounds: int


@dataclass(frozen=True, slots=True)
class Step:
    """How often one agent began after another."""

    before: str
    after: str
    count: int


@dataclass(frozen=True, slots=True)
class Paths:
    """The ways of the runs that were looked at.

    Attributes:
        runs: runs whose whole way is known; those of `paths` add up to this if none was left off.
        cut: runs whose journal begins earlier than what was read, or could not be read: their ways count not.
        without_agents: workflows in which no agent was seen.
        left_off: how many further ways there are.
    """

    looked_at: int
    total: int
    runs: int
    cut: int
    without_agents: int
    paths: tuple[Path, ...]
    loops: tuple[Loop, ...]
    steps: tuple[Step, ...]
    left_off: int


def paths(kit: Kit, workflow_id: str | None = None, limit: int = WORKFLOWS_MAX) -> Paths:
    """Tell which ways the newest workflows took, or one, the most frequent first."""
    return paths_of(take_sample(kit, workflow_id, 0 if workflow_id else limit))


def paths_of(sample: Sample) -> Paths:
    """Tell which ways the workflows of a sample took, the most frequent first."""
    whole = [one for one in sample.looked if not one.is_cut and not one.problem]
    ways = [(one, way_of(one)) for one in whole]
    walked = [(one, way) for one, way in ways if way]
    found = _counted(walked)
    return Paths(
        len(sample.looked),
        sample.total,
        len(walked),
        len(sample.looked) - len(whole),
        len(whole) - len(walked),
        tuple(found[:SHOWN_MAX]),
        tuple(loops_in([way for _, way in walked])[:SHOWN_MAX]),
        tuple(_steps([way for _, way in walked])[:SHOWN_MAX]),
        max(len(found) - SHOWN_MAX, 0),
    )


def way_of(looked: Looked) -> tuple[str, ...]:
    """Tell in which order the agents of a run began; items of one agent in a row are one."""
    seen: set[str] = set()
    way: list[str] = []
    last: tuple[str, str] | None = None
    for attempt in attempts_of(looked):
        if attempt.step_id in seen:
            # Tried again, which is no way of its own.
            continue
        seen.add(attempt.step_id)
        turn = (attempt.agent, _round(attempt.step_id))
        if turn != last:
            way.append(attempt.agent)
        last = turn
    return tuple(way[:_WAY_MAX])


def contracted(way: Sequence[str]) -> tuple[str, ...]:
    """Leave of what is repeated at once one turn: runs that differ in rounds only took the same way."""
    left = list(way)
    for length in range(1, min(len(left) // 2, _CIRCLE_MAX) + 1):
        kept: list[str] = []
        for agent in left:
            kept.append(agent)
            if kept[-length:] == kept[-2 * length : -length]:
                del kept[-length:]
        left = kept
    return tuple(left)


def loops_in(ways: Sequence[Sequence[str]]) -> list[Loop]:
    """Find circles: an agent that comes again, and what was between."""
    rounds: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    entered: dict[tuple[str, ...], tuple[str, ...]] = {}
    for way in ways:
        for circle, count in rounds_in(way).items():
            rounds[_turned(circle)].append(count)
            entered.setdefault(_turned(circle), circle)
    found = [Loop(entered[name], len(each), median(each), max(each)) for name, each in rounds.items()]
    return sorted(found, key=lambda one: (-one.runs, -one.max_rounds, one.agents))


def rounds_in(way: Sequence[str]) -> dict[tuple[str, ...], int]:
    """Count how often each circle of a way was gone through, named as it was entered; once is no circle."""
    last: dict[str, int] = {}
    entered: dict[tuple[str, ...], tuple[str, ...]] = {}
    returns: Counter[tuple[str, ...]] = Counter()
    for place, agent in enumerate(way):
        began = last.get(agent)
        if began is not None and place - began <= _CIRCLE_MAX:
            circle = tuple(way[began:place])
            returns[entered.setdefault(_turned(circle), circle)] += 1
        last[agent] = place
    # A second round begins with the first agent's return; from then on each agent of it returns once a round.
    return {circle: 1 + -(-count // len(circle)) for circle, count in returns.items()}


def _round(step_id: str) -> str:
    """Tell the round of a loop that a step belongs to; empty for the first."""
    found = _ROUND.search(step_id)
    return found[1] if found else ""


def _turned(circle: Sequence[str]) -> tuple[str, ...]:
    """Name a circle the same wherever one enters it."""
    return min(tuple(circle[place:]) + tuple(circle[:place]) for place in range(len(circle)))


def _counted(walked: Sequence[tuple[Looked, tuple[str, ...]]]) -> list[Path]:
    by_way: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for looked, way in walked:
        by_way[contracted(way)].append(looked.status)
    found = [_path(way, statuses, len(walked)) for way, statuses in by_way.items()]
    return sorted(found, key=lambda one: (-one.runs, one.agents))


def _path(way: tuple[str, ...], statuses: list[str], runs: int) -> Path:
    completed = statuses.count("completed")
    failed = sum(status in _FAILED for status in statuses)
    return Path(
        way, len(statuses), completed, failed, len(statuses) - completed - failed, len(statuses) / runs
    )


def _steps(ways: Sequence[Sequence[str]]) -> list[Step]:
    counts = Counter(pair for way in ways for pair in pairwise(way))
    found = [Step(before, after, count) for (before, after), count in counts.items()]
    return sorted(found, key=lambda one: (-one.count, one.before, one.after))
