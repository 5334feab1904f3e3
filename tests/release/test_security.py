"""What SECURITY.md promises is shown by tests that are there."""

from __future__ import annotations

import re

from tests.named_tests import ROOT, undefined

PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/]+\.py::\w+)`")
#: What each row of a promise has: the promise, how it is kept, by which tests it is shown.
ROW = re.compile(r"^\| (?P<promise>[^|]+) \| [^|]+ \| (?P<tests>`tests/.*) \|$", re.MULTILINE)


def test_every_test_that_the_page_names_is_there() -> None:
    named = NAMED.findall(PAGE)
    assert len(named) > 50
    assert undefined(named) == set()


def test_a_test_that_is_not_there_would_be_found() -> None:
    assert undefined(["tests/test_house.py::test_that_nobody_wrote"]) != set()


def test_every_promise_names_a_test() -> None:
    chapters = PAGE.partition("## Who may attack")[2].partition("### What is installed")[0]
    rows = [line for line in chapters.splitlines() if line.startswith("| ") and "shown by" not in line]
    assert len(rows) > 20
    assert [row for row in rows if not ROW.match(row)] == []


def test_every_attacker_is_told_what_is_not_promised() -> None:
    chapters = PAGE.partition("## Who may attack")[2].partition("## Hardening")[0].split("\n### ")[1:]
    assert len(chapters) == 8
    assert [chapter.partition("\n")[0] for chapter in chapters if "Not promised:" not in chapter] == []


def test_versions_that_are_mended_are_those_that_were_released() -> None:
    from release.build import version

    assert f"| {version().rpartition('.')[0]}.x | yes |" in PAGE
