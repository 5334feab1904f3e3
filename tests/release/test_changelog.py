"""One place says which version this is, and everything else agrees with it."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import holdfast
from release.build import ROOT, version
from release.changelog import Heading, headings, source_epoch

CHANGELOG = ROOT / "CHANGELOG.md"


def test_the_newest_release_of_the_changelog_is_this_version() -> None:
    unreleased, newest, *_ = headings(CHANGELOG.read_text("utf-8"))
    assert unreleased == Heading("Unreleased", None)
    assert newest.version == holdfast.__version__ == version()
    assert newest.day is not None


def test_releases_stand_with_their_days_the_newest_first() -> None:
    days = [heading.day for heading in headings(CHANGELOG.read_text("utf-8"))[1:]]
    assert None not in days
    assert days == sorted(filter(None, days), reverse=True)


def test_the_command_tells_the_same_version() -> None:
    command = [sys.executable, "-m", "holdfast", "version", "--json"]
    told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert told["holdfast"] == version()


def test_files_of_a_release_are_dated_with_its_day(tmp_path: Path) -> None:
    page = tmp_path / "CHANGELOG.md"
    page.write_text("# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2027-01-02\n\n## [0.1.0] - 2026-11-16\n")
    assert headings(page.read_text())[1] == Heading("0.2.0", date(2027, 1, 2))
    assert datetime.fromtimestamp(source_epoch(page), UTC) == datetime(2027, 1, 2, tzinfo=UTC)
