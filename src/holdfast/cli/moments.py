"""Times and spans of time as a person writes them: `2026-01-31`, `7d`, `WF@{10m ago}`."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_AGO = re.compile(r"(?P<workflow>.+)@\{(?P<when>[^{}]+)\}", re.DOTALL)
_AGO_WORD = re.compile(r"\s+ago$")


def span(text: str) -> timedelta | None:
    """Read a span of time: `90m`, `7d`; None if it is none."""
    found = _SPAN.fullmatch(text)
    return timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else None


def moment(text: str) -> datetime:
    """Read a time in ISO 8601, in UTC where it names no zone, or so long ago: `90m`, `7d`.

    Raises:
        ValueError: it is neither, or lies before all calendars.
    """
    ago = span(text)
    try:
        if ago is not None:
            return datetime.now(UTC) - ago
        when = datetime.fromisoformat(text)
        return when.astimezone(UTC) if when.tzinfo else when.replace(tzinfo=UTC)
    except OverflowError as fault:
        raise ValueError(str(fault)) from None


def read_moment(context: click.Context, option: click.Parameter, value: str | None) -> datetime | None:
    """Read the value of an option that is a time."""
    if value is None:
        return None
    try:
        return moment(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no time; write 2026-01-31, 2026-01-31T12:00 or 7d", context, option
        ) from None


def read_span(context: click.Context, option: click.Parameter, value: str | None) -> timedelta | None:
    """Read the value of an option that is a span of time."""
    found = None if value is None else span(value)
    if value is not None and found is None:
        raise click.BadParameter(f"{value!r} is no span of time; write 36h, 7d or 4w", context, option)
    return found


def read_point(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Read a checkpoint or a point; `WF@{10m ago}` becomes the point at that time, everything else stays."""
    found = None if value is None else _AGO.fullmatch(value)
    if found is None:
        return value
    try:
        when = moment(_AGO_WORD.sub("", found["when"].strip()))
    except ValueError:
        raise click.BadParameter(
            f"{value!r}: between braces stands a time, as in WF@{{10m ago}}", context, option
        ) from None
    from holdfast.domain.time import timestamp_text

    return f"{found['workflow']}@time:{timestamp_text(when)}"
