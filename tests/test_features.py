"""The page of features: every feature and every command has a row, and every row a test that is there."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from holdfast.cli.group import COMMANDS
from tests.named_tests import undefined

PAGE = Path(__file__).parent.parent / "docs" / "features.md"
ROW = re.compile(r"^\| (?P<name>[^|]+) \| (?P<what>[^|]+) \| (?P<tests>[^|]*) \|$", re.MULTILINE)
#: What the dashboard has to have.
FEATURES = (
    *("Home", "Timeline", "Graph", "Checkpoint", "Difference", "Dialogs", "Live", "Audit"),
    *("Proofs and exports", "Storage", "Quarantine", "Search", "Deep links", "Keyboard", "Accessibility"),
    *("Themes and print", "Offline", "Redaction", "Roles", "Time", "Demo", "Report"),
    "Small screens",
    "Annotations",
)


def rows_of(text, heading):
    """Answer the rows below a heading: what each is about, and the tests it names."""
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = [row for row in ROW.finditer(part) if row["name"] not in ("feature", "command", "---")]
    return {row["name"].strip("`"): re.findall(r"`(tests/[^`]+)`", row["tests"]) for row in found}


def commands(table, before="holdfast"):
    """Answer every command with the groups it is in."""
    for name, (module, _) in table.items():
        inner = getattr(import_module(f"holdfast.cli.{module}").command, "table", None)
        if inner is None:
            yield f"{before} {name}"
        else:
            yield from commands(inner, f"{before} {name}")


def faults(text):
    """Answer what is wrong with the page."""
    features, tools = rows_of(text, "The dashboard"), rows_of(text, "The command line")
    named = [test for tests in (*features.values(), *tools.values()) for test in tests]
    return {
        "missing": sorted({*FEATURES, *commands(COMMANDS)} - {*features, *tools}),
        "unknown": sorted({*features, *tools} - {*FEATURES, *commands(COMMANDS)}),
        "without a test": sorted(name for name, tests in (features | tools).items() if not tests),
        "no such test": sorted(undefined(named)),
    }


NONE: dict[str, list[str]] = {"missing": [], "unknown": [], "without a test": [], "no such test": []}


def test_every_feature_and_command_has_a_row_with_a_test_that_is_there():
    assert faults(PAGE.read_text("utf-8")) == NONE


@pytest.mark.parametrize(
    ("pattern", "instead", "fault"),
    [
        (r"\| Home \|.*\n", "", "missing"),
        (r"\| `holdfast audit proof` \|.*\n", "", "missing"),
        (r"\| Home \|", "| Hoam |", "unknown"),
        (r"(\| Home \|[^|]+\|).*\|", r"\1  |", "without a test"),
        (r"::test_what_is_urgent\w+", "::test_that_nobody_wrote", "no such test"),
    ],
)
def test_a_page_with_a_fault_would_be_found(pattern, instead, fault):
    """The negative control."""
    changed = re.sub(pattern, instead, PAGE.read_text("utf-8"), count=1)
    assert faults(changed)[fault]
