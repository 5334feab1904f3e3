"""Values of types that Python brings along, as tagged objects and back."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from holdfast.domain.errors import UnstorableValueError
from holdfast.domain.tree import TAG

Tagged = dict[str, Any]


def _moment(name: str) -> Callable[[Any], Tagged]:
    """Make the writer for datetime or time: text, zone and fold."""

    def write(value: datetime | time) -> Tagged:
        tagged: Tagged = {TAG: name, "v": value.isoformat()}
        if value.tzinfo is not None and value.tzinfo is not UTC:
            tagged.update(_zone(value.tzinfo))
        if value.fold:
            tagged["fold"] = 1
        return tagged

    return write


def _zone(zone: tzinfo) -> dict[str, str]:
    if type(zone) is ZoneInfo and zone.key:
        return {"tz": zone.key}
    if type(zone) is timezone:
        name = zone.tzname(None)
        return {} if name == timezone(zone.utcoffset(None)).tzname(None) else {"name": name}
    raise UnstorableValueError(
        f"the time zone {zone!r} cannot be stored", hint="Use datetime.timezone, or ZoneInfo with a key."
    )


def _read_moment(read: Callable[[str], Any]) -> Callable[[Tagged], Any]:
    def revive(tagged: Tagged) -> Any:
        value = read(tagged["v"])
        if "tz" in tagged:
            value = value.replace(tzinfo=ZoneInfo(tagged["tz"]))
        elif "name" in tagged:
            value = value.replace(tzinfo=timezone(value.utcoffset(), tagged["name"]))
        return value.replace(fold=1) if tagged.get("fold") else value

    return revive


def _read_int(text: str) -> int:
    return int(text, 16) if "x" in text[:3] else int(text)


#: What turns a value into its tagged object.
WRITERS: dict[type, Callable[[Any], Tagged]] = {
    datetime: _moment("datetime"),
    time: _moment("time"),
    date: lambda value: {TAG: "date", "v": value.isoformat()},
    timedelta: lambda value: {TAG: "timedelta", "v": [value.days, value.seconds, value.microseconds]},
    UUID: lambda value: {TAG: "uuid", "v": str(value)},
    Decimal: lambda value: {TAG: "decimal", "v": str(value)},
    tuple: lambda value: {TAG: "tuple", "v": list(value)},
    type(Path()): lambda value: {TAG: "path", "v": value.as_posix()},
    PurePosixPath: lambda value: {TAG: "posixpath", "v": str(value)},
    PureWindowsPath: lambda value: {TAG: "windowspath", "v": str(value)},
}

#: What turns a tagged object into its value.
READERS: dict[str, Callable[[Tagged], Any]] = {
    "datetime": _read_moment(datetime.fromisoformat),
    "time": _read_moment(time.fromisoformat),
    "date": lambda tagged: date.fromisoformat(tagged["v"]),
    "timedelta": lambda tagged: timedelta(*tagged["v"]),
    "uuid": lambda tagged: UUID(tagged["v"]),
    "decimal": lambda tagged: Decimal(tagged["v"]),
    "bytes": lambda tagged: base64.b64decode(tagged["v"], validate=True),
    "float": lambda tagged: float(tagged["v"]),
    "int": lambda tagged: _read_int(tagged["v"]),
    "str": lambda tagged: base64.b64decode(tagged["v"], validate=True).decode("utf-8", "surrogatepass"),
    "tuple": lambda tagged: tuple(tagged["v"]),
    "set": lambda tagged: set(tagged["v"]),
    "frozenset": lambda tagged: frozenset(tagged["v"]),
    "path": lambda tagged: Path(tagged["v"]),
    "posixpath": lambda tagged: PurePosixPath(tagged["v"]),
    "windowspath": lambda tagged: PureWindowsPath(tagged["v"]),
    "map": lambda tagged: dict(tagged["v"]),
    "dict": lambda tagged: dict(tagged["v"]),
}
