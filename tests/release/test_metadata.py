"""Metadata is refused that an index would refuse, that lacks something, or that claims what was not tried."""

from __future__ import annotations

import pytest

from release.metadata import TESTED_PYTHONS, metadata_problems

CLASSIFIERS = [f"Programming Language :: Python :: {python}" for python in TESTED_PYTHONS]
LINES = [
    "Metadata-Version: 2.4",
    "Name: holdfast",
    "Version: 1.0",
    "Summary: Holds on.",
    "Keywords: kelp",
    "License-Expression: Apache-2.0",
    "Requires-Python: >=3.11",
    "Requires-Dist: click>=8.1",
    "Description-Content-Type: text/markdown",
    *(f"Classifier: {name}" for name in CLASSIFIERS),
]


def problems(lines: list[str]) -> list[str]:
    return metadata_problems(
        "\n".join([*lines, "", "# Holdfast"]).encode(), "1.0", {*CLASSIFIERS, "Typing :: Typed"}
    )


def test_metadata_that_is_complete_has_no_problem() -> None:
    assert problems(LINES) == []


@pytest.mark.parametrize("number", range(1, len(LINES)))
def test_every_line_is_needed_but_those_of_requirements(number: int) -> None:
    found = problems(LINES[:number] + LINES[number + 1 :])
    assert bool(found) != LINES[number].startswith("Requires-Dist")


@pytest.mark.parametrize(
    "line",
    [
        "Classifier: Framework :: Of Nobody",
        "Classifier: Programming Language :: Python :: 3.99",
        "Requires-Dist: click>>8",
        "Colour: green",
    ],
)
def test_what_is_wrong_is_told(line: str) -> None:
    assert problems([*LINES, line])


def test_a_licence_that_is_no_expression_is_told() -> None:
    assert problems([line.replace("Apache-2.0", "the Apache one") for line in LINES])


def test_a_version_that_is_not_that_of_the_source_is_told() -> None:
    assert problems([line.replace("Version: 1.0", "Version: 1.1") for line in LINES]) == [
        "the version is 1.1, the source says 1.0"
    ]
