"""How a store grows, told by its listings, and when its disk or a limit will be full.

A listing names what is kept: the size of every record and keyframe, and when it was made. Events, blobs and
the trail are in no listing; they are taken to grow in proportion, where all workflows were looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from holdfast.application.insight.sample import (
    LISTED_MAX,
    Chosen,
    Listed,
    OnProgress,
    listings,
    newest_workflows,
    silently,
)
from holdfast.application.kit import Kit
from holdfast.domain.statistics import Line, outliers, robust_line
from holdfast.domain.time import parse_timestamp

#: From so many days on there is a line to speak of.
LEAST_DAYS = 3
DAYS = 30
_DAY_SECONDS = 86_400
#: A day so far out that brought so much of everything does not count as growth: an import, say.
_EXCEPTIONAL_SCORE, _EXCEPTIONAL_SHARE = 10.0, 0.25
_YEARS_TOLD_DAYS = 100 * 366


@dataclass(frozen=True, slots=True)
class Day:
    """One day (UTC): checkpoints made, those of them that are kept, their bytes, and the sum up to then."""

    day: str
    checkpoints: int
    kept: int
    bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """Where growth leads if it goes on as it did.

    Attributes:
        bytes_per_day: the median of the growth between any two days; half of all lie between low and high.
        bytes_after: what the store will hold so many days from now as the window was long.
        what: what will be full first, `disk` or `limit`; None where neither is known or it does not grow.
        room_bytes: how much is left there.
        days_left: how long until it is full; low and high belong to the faster and the slower growth.
        full_on: the day of that.
        exceptional: days that brought so much that they count as happening once, and are left out.
    """

    bytes_per_day: float
    low_bytes_per_day: float
    high_bytes_per_day: float
    bytes_after: float
    what: str | None
    room_bytes: int | None
    days_left: float | None
    low_days_left: float | None
    high_days_left: float | None
    full_on: str | None
    exceptional: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Growth:
    """How a store grew over some days.

    Attributes:
        days: every day of the window since the first checkpoint in it, the oldest first.
        listed_bytes: records and keyframes of what was looked at.
        store_bytes: everything the store keeps.
        factor: how much larger the store is than what listings name; 1 where not all was looked at.
        is_whole: everything that was written in the window was looked at.
        forecast: None where there is too little to tell; `reason` says why.
    """

    days: tuple[Day, ...]
    looked_at: int
    total: int
    is_whole: bool
    listed_bytes: int
    store_bytes: int
    factor: float
    disk_bytes: int | None
    free_bytes: int | None
    limit_bytes: int | None
    forecast: Forecast | None
    reason: str


@dataclass(slots=True)
class _Tally:
    """What was added up so far."""

    made: Counter[str]
    kept: Counter[str]
    sizes: Counter[str]
    looked_at: int = 0
    oldest: str = "9"


def growth(
    kit: Kit,
    days: int = DAYS,
    *,
    workflow_id: str | None = None,
    limit_bytes: int | None = None,
    limit: int = LISTED_MAX,
    on_progress: OnProgress = silently,
) -> Growth:
    """Tell how the store, or one workflow in it, grew over some days, and where that leads.

    Args:
        days: how far back to look.
        workflow_id: only this workflow.
        limit_bytes: what the store must not exceed; where that is less than the disk has room for, it counts.
        limit: how many workflows to look at, the newest.
    """
    chosen = Chosen((workflow_id,), 1) if workflow_id else newest_workflows(kit.store, limit)
    store_bytes = int(kit.store.stats().get("bytes", 0))
    is_part = workflow_id is not None
    return growth_of(kit, chosen, days, store_bytes, limit_bytes, on_progress, is_part=is_part)


def growth_of(
    kit: Kit,
    chosen: Chosen,
    days: int,
    store_bytes: int,
    limit_bytes: int | None,
    on_progress: OnProgress = silently,
    *,
    is_part: bool,
) -> Growth:
    """Tell how the workflows that were chosen grew; `is_part`: there are others, whatever was counted."""
    tally = _Tally(Counter(), Counter(), Counter())
    for listed in listings(kit, chosen.names, on_progress):
        _add(tally, listed)
    now, total = kit.clock.now(), chosen.total
    listed_bytes = sum(tally.sizes.values())
    is_all = tally.looked_at == total and not is_part
    factor = max(store_bytes / listed_bytes, 1.0) if is_all and listed_bytes else 1.0
    space = kit.space() if kit.space is not None else None
    window = tuple(_window(tally, now, days))
    forecast, reason = _forecast(window, now, factor, store_bytes, space, limit_bytes)
    first = (now.date() - timedelta(days=days)).isoformat()
    return Growth(
        window,
        tally.looked_at,
        total,
        tally.looked_at == total or tally.oldest < first,
        listed_bytes,
        store_bytes,
        factor,
        space[0] if space else None,
        space[1] if space else None,
        limit_bytes,
        forecast,
        reason,
    )


def _add(tally: _Tally, listed: Listed) -> None:
    tally.looked_at += 1
    days = {entry.sequence: entry.timestamp[:10] for entry in listed.entries}
    for entry in listed.entries:
        day = days[entry.sequence]
        tally.made[day] += 1
        if not entry.pruned:
            tally.kept[day] += 1
            tally.sizes[day] += entry.length
    for keyframe in listed.keyframes:
        if keyframe.sequence in days:
            tally.sizes[days[keyframe.sequence]] += keyframe.length
    tally.oldest = min(tally.oldest, max(days.values(), default="9"))


def _window(tally: _Tally, now: datetime, days: int) -> Iterator[Day]:
    """Tell each day since the first checkpoint, and no further back than asked for."""
    first = now.date() - timedelta(days=days - 1)
    if not tally.made:
        return
    begin = max(first, date.fromisoformat(min(tally.made)))
    total = sum(size for day, size in tally.sizes.items() if day < begin.isoformat())
    for number in range((now.date() - begin).days + 1):
        day = (begin + timedelta(days=number)).isoformat()
        total += tally.sizes[day]
        yield Day(day, tally.made[day], tally.kept[day], tally.sizes[day], total)


def _forecast(
    window: tuple[Day, ...],
    now: datetime,
    factor: float,
    store_bytes: int,
    space: tuple[int, int] | None,
    limit_bytes: int | None,
) -> tuple[Forecast | None, str]:
    left_out = _exceptional(window)
    line = robust_line([(_place(now, day), size * factor) for day, size in _sums(window, left_out)])
    if line is None or len(window) < LEAST_DAYS:
        return None, f"the checkpoints span {len(window)} of the {LEAST_DAYS} days that are needed"
    rooms = {"disk": space[1]} if space else {}
    if limit_bytes is not None:
        rooms["limit"] = max(limit_bytes - store_bytes, 0)
    what = min(rooms, key=lambda name: rooms[name], default=None) if line.slope > 0 else None
    room = rooms[what] if what else None
    days_left = _days_left(room, line.slope)
    return (
        Forecast(
            line.slope,
            line.low_slope,
            line.high_slope,
            max(store_bytes + line.slope * len(window), 0.0),
            what,
            room,
            days_left,
            _days_left(room, line.high_slope),
            _days_left(room, line.low_slope),
            _day_after(now, days_left),
            tuple(day.day for day in window if day.day in left_out),
        ),
        _words(line),
    )


def _exceptional(window: tuple[Day, ...]) -> set[str]:
    """Find days that are far out, and brought a good part of everything in the window."""
    sizes = [day.bytes for day in window]
    least = _EXCEPTIONAL_SHARE * sum(sizes)
    found = outliers(sizes, score=_EXCEPTIONAL_SCORE)
    return {window[one.index].day for one in found if one.score > 0 and one.value > least}


def _sums(window: tuple[Day, ...], left_out: set[str]) -> Iterator[tuple[str, int]]:
    """Tell the sum of each day as if some had brought nothing."""
    less = 0
    for day in window:
        less += day.bytes if day.day in left_out else 0
        yield day.day, day.total_bytes - less


def _place(now: datetime, day: str) -> float:
    """Tell when a day's sum was reached, in days from now: at its end, today now."""
    end = parse_timestamp(f"{day}T00:00:00Z") + timedelta(days=1)
    return min((end - now).total_seconds(), 0.0) / _DAY_SECONDS


def _days_left(room_bytes: int | None, per_day: float) -> float | None:
    return room_bytes / per_day if room_bytes is not None and per_day > 0 else None


def _day_after(now: datetime, days: float | None) -> str | None:
    if days is None or days > _YEARS_TOLD_DAYS:
        return None
    return (now + timedelta(days=days)).date().isoformat()


def _words(line: Line) -> str:
    return "" if line.slope > 0 else "it does not grow"
