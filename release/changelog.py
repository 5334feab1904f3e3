"""What CHANGELOG.md says of versions and their days."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

_HEADING = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<day>\d{4}-\d\d-\d\d))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Heading:
    """A version that the changelog tells of; the day is None for what is not released."""

    version: str
    day: date | None


def headings(text: str) -> list[Heading]:
    """Answer the versions of a changelog, as they stand there."""
    return [
        Heading(found["version"], date.fromisoformat(found["day"]) if found["day"] else None)
        for found in _HEADING.finditer(text)
    ]


def source_epoch(changelog: Path) -> int:
    """Answer the second that every file of a release is dated with: the beginning of the day of the newest.

    It is told by the source itself, so that whoever has just the sdist builds the same bytes.
    """
    newest = next(heading.day for heading in headings(changelog.read_text("utf-8")) if heading.day)
    return int(datetime(newest.year, newest.month, newest.day, tzinfo=UTC).timestamp())
