from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import CheckpointCorruptError, InvalidStateError
from holdfast.domain.time import parse_timestamp, timestamp_text

AWARE = st.datetimes(
    min_value=datetime(2, 1, 1),
    max_value=datetime(9998, 12, 31),
    timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


@given(AWARE)
def test_a_moment_comes_back_equal_and_in_utc(moment):
    restored = parse_timestamp(timestamp_text(moment))
    assert restored == moment
    assert restored.tzinfo is UTC


@given(AWARE, AWARE)
def test_text_order_is_time_order(one, other):
    assert (timestamp_text(one) < timestamp_text(other)) == (one < other)


def test_the_spelling_is_fixed():
    moment = datetime(2026, 1, 11, 15, 30, tzinfo=timezone(timedelta(hours=1)))
    assert timestamp_text(moment) == "2026-01-11T14:30:00.000000Z"
    assert timestamp_text(moment.astimezone(UTC)) == "2026-01-11T14:30:00.000000Z"
    assert timestamp_text(moment.astimezone(UTC).replace(microsecond=120)) == "2026-01-11T14:30:00.000120Z"


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2026, 1, 11),
        "2026-01-11",
        None,
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    ],
)
def test_what_is_no_moment_is_refused(moment):
    with pytest.raises(InvalidStateError):
        timestamp_text(moment)


def test_a_timestamp_without_fractions_is_read():
    assert parse_timestamp("2026-01-11T14:30:00Z") == datetime(2026, 1, 11, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "soon", "2026-01-11T14:30:00", "2026-13-11T14:30:00Z", 5])
def test_what_is_no_timestamp_is_refused(text):
    with pytest.raises(CheckpointCorruptError, match="is not a timestamp"):
        parse_timestamp(text)
