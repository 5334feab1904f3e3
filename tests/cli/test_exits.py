from __future__ import annotations

import re
from pathlib import Path

from holdfast.cli.exits import EXIT_OF_ERROR, Exit, Failure, exit_of, was_interrupted
from holdfast.domain.errors import all_codes

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_every_error_of_the_library_has_an_exit_code_and_nothing_else_has():
    assert set(EXIT_OF_ERROR) == set(all_codes())


def test_every_code_that_only_the_command_line_has_is_on_its_page():
    room = Path(__file__).parents[2] / "src" / "holdfast" / "cli"
    sources = [path.read_text() for path in room.glob("*.py")]
    used = {code for text in sources for code in re.findall(r'\bFailure\(\s*"([a-z_]+)"', text)}
    told = PAGE.read_text().split("`code` is one of", 1)[1].split("### Exit codes", 1)[0]
    assert "not_installed" in used
    assert used - set(all_codes()) <= set(re.findall(r"`([a-z_]+)`", told))


def test_an_error_of_a_newer_library_is_unexpected():
    assert exit_of("from_the_future") is Exit.UNEXPECTED


def test_the_codes_that_scripts_rely_on_stay():
    assert {leave.name: leave.value for leave in Exit} == {
        "DONE": 0,
        "UNEXPECTED": 1,
        "USAGE": 2,
        "PARTIAL": 3,
        "NOT_FOUND": 4,
        "DIFFERENT": 5,
        "DIVERGED": 6,
        "RUN_FAILED": 7,
        "WAITING": 8,
        "PAUSED": 9,
        "NO_STORE": 10,
        "LOCKED": 11,
        "NO_KEY": 12,
        "UNREACHABLE": 13,
        "CANCELLED": 14,
        "CORRUPT": 20,
        "NOT_VERIFIED": 21,
        "INCONCLUSIVE": 22,
        "NOTHING_VALID": 30,
        "REFUSED": 31,
        "OLDER": 32,
        "OTHER_FORMAT": 40,
        "INTERRUPTED": 130,
        "PIPE_CLOSED": 141,
        "TERMINATED": 143,
    }


def test_every_exit_code_is_documented_and_nothing_else():
    documented = re.findall(r"^\| (\d+) \|", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert [int(code) for code in documented] == [leave.value for leave in Exit]


def test_a_failure_carries_what_its_report_needs():
    failure = Failure("refused", Exit.REFUSED, "no", place="here", hint="ask")
    assert (failure.code, failure.leave, failure.message, failure.place, failure.hint) == (
        "refused",
        31,
        "no",
        "here",
        "ask",
    )


def test_an_interrupt_is_found_wherever_it_stands_in_the_chain():
    first, second, alone = ValueError("a"), ImportError("b"), ValueError("c")
    first.__cause__, second.__context__ = KeyboardInterrupt(), first
    assert was_interrupted(KeyboardInterrupt()) and was_interrupted(first) and was_interrupted(second)
    second.__suppress_context__ = True
    # One that stands for itself ends the search, and so does a circle.
    alone.__context__, first.__cause__ = first, alone
    assert not was_interrupted(second) and not was_interrupted(alone)
