"""Robust statistics: what a few wild values cannot lead astray.

Medians instead of means, the median of pairwise slopes instead of least squares, and distances measured in
medians of distances: up to a good quarter of the values may be anything at all without changing the picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

#: From so many values on it can be said what is usual.
LEAST_SAMPLES = 8
#: Values further out than this are not usual; in a normal distribution one in two thousand.
OUTLIER_SCORE = 3.5
#: A median distance from the median is that much of a standard deviation, a mean distance that much.
_PER_MEDIAN_DISTANCE = 0.6745
_PER_MEAN_DISTANCE = 0.7979
#: More points than these are thinned out: the number of pairs grows with the square.
_LINE_POINTS_MAX = 400


@dataclass(frozen=True, slots=True)
class Outlier:
    """A value that is unlike its neighbours: which one, and how many deviations from the usual."""

    index: int
    value: float
    usual: float
    score: float


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line through points, and the slopes that half of all pairs of points lie between."""

    slope: float
    intercept: float
    low_slope: float
    high_slope: float

    def at(self, x: float) -> float:
        """Tell the height of the line at a place."""
        return self.intercept + self.slope * x


@dataclass(frozen=True, slots=True)
class Spread:
    """How values are spread."""

    count: int
    median: float
    p95: float
    largest: float
    total: float


def spread(values: Sequence[float]) -> Spread | None:
    """Tell how values are spread; None where there is none."""
    if not values:
        return None
    return Spread(len(values), median(values), quantile(values, 0.95), max(values), math.fsum(values))


def quantile(values: Sequence[float], share: float) -> float:
    """Tell the value that so large a share of all values does not exceed, in between by a straight line."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def outliers(
    values: Sequence[float], *, score: float = OUTLIER_SCORE, least: int = LEAST_SAMPLES
) -> list[Outlier]:
    """Find values that are unlike the others; none where all are equal, or where there are too few.

    A value is measured by its distance from the median, in medians of such distances. Where more than half
    of the values are equal that is 0, and the mean of the distances is taken instead.
    """
    if len(values) < least:
        return []
    usual = median(values)
    distances = [abs(value - usual) for value in values]
    middle, whole = median(distances), math.fsum(distances)
    if whole == 0:
        return []

    def scored(distance: float) -> float:
        if middle:
            return distance / middle * _PER_MEDIAN_DISTANCE
        return distance * len(values) / whole * _PER_MEAN_DISTANCE

    return [
        Outlier(index, value, usual, math.copysign(scored(distance), value - usual))
        for index, (value, distance) in enumerate(zip(values, distances, strict=True))
        if scored(distance) > score
    ]


def robust_line(points: Sequence[tuple[float, float]]) -> Line | None:
    """Lay a line through points by the median of the slopes of all pairs; None where that has no answer."""
    kept = _thinned(points)
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(kept, 2) if x1 != x2]
    if not slopes:
        return None
    slope = median(slopes)
    intercept = median([y - slope * x for x, y in kept])
    return Line(slope, intercept, quantile(slopes, 0.25), quantile(slopes, 0.75))


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Take points at even distances where there are too many, the first and the last among them."""
    if len(points) <= _LINE_POINTS_MAX:
        return list(points)
    last = len(points) - 1
    return [points[round(place * last / (_LINE_POINTS_MAX - 1))] for place in range(_LINE_POINTS_MAX)]
