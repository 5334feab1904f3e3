"""Timestamps as text: UTC, microseconds, one spelling, so that text order is time order."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.domain.errors import CheckpointCorruptError, InvalidStateError

_UTC = "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ"
#: The moment last written and its text: what one commit records is of one moment.
_last: tuple[datetime, str] = (datetime.min, "")


def timestamp_text(moment: datetime) -> str:
    """Write an aware datetime as `2026-01-11T14:30:00.000000Z`."""
    global _last
    known, text = _last
    if moment is not known:
        text = _written(moment)
        _last = moment, text
    return text


def _written(moment: datetime) -> str:
    if type(moment) is datetime and moment.tzinfo is UTC:
        # The usual case, on the way of every commit: `isoformat` asks the time zone, and takes twice as long.
        day = moment.year, moment.month, moment.day
        return _UTC % (*day, moment.hour, moment.minute, moment.second, moment.microsecond)
    if not isinstance(moment, datetime):
        raise InvalidStateError(
            f"a {type(moment).__name__} is not a datetime", hint="Use datetime.now(timezone.utc)."
        )
    if moment.utcoffset() is None:
        raise InvalidStateError(
            f"the datetime {moment.isoformat()} has no time zone", hint="Use datetime.now(timezone.utc)."
        )
    try:
        in_utc = moment.astimezone(UTC)
    except OverflowError:
        raise InvalidStateError(f"the datetime {moment.isoformat()} has no equal in UTC") from None
    return in_utc.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_timestamp(text: str) -> datetime:
    """Read an ISO 8601 timestamp that names its time zone; answer it in UTC."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is UTC:
            return moment
        if moment.utcoffset() is not None:
            return moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError):
        pass
    raise CheckpointCorruptError(
        f"{text!r} is not a timestamp", hint="It should read like 2026-01-11T14:30:00.000000Z."
    )
