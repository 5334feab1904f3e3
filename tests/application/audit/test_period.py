"""A period is a stretch of the log: nothing between its ends is left out, whatever clocks said."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from holdfast.application.audit.period import Period
from tests.trails import make_log

LOG = make_log(12, (12,), sessions=2)
TIMES = [re.search(rb'"ts":"([^"]+)"', line)[1].decode() for line in LOG.lines]  # type: ignore[index]


def test_the_end_is_not_part_of_it() -> None:
    ends = sorted(set(TIMES))
    period = Period(ends[1], ends[-1])
    first, last = period.stretch(LOG.lines)
    assert TIMES[first] == ends[1] and ends[-1] not in TIMES[first : last + 1]
    assert TIMES[last + 1] == ends[-1]


def test_a_period_may_be_open_at_either_end() -> None:
    assert Period().stretch(LOG.lines) == (0, 11)
    assert Period(since="9").stretch(LOG.lines) == (0, -1)
    assert Period(until="1").stretch(LOG.lines) == (0, -1)
    assert Period.between(None, None) is None
    until = datetime(2026, 2, 1, tzinfo=UTC)
    assert str(Period.between(None, until)) == "from the beginning to 2026-02-01T00:00:00.000000Z"


def test_what_lies_between_is_never_left_out() -> None:
    inside, outside = LOG.lines[0], LOG.lines[-1]
    period = Period(until=TIMES[-1])
    assert period.has(inside) and not period.has(outside)
    assert period.stretch([outside, inside, outside, b"damaged\n", inside, outside]) == (1, 4)
