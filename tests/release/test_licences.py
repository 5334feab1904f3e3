"""A licence that does not go with Apache-2.0, or that nobody can tell, is refused by name."""

from __future__ import annotations

from importlib.metadata import Distribution
from pathlib import Path

import pytest

from release.licences import PERMISSIVE, WEAK, counted, licence_of, licence_problem


def installed(folder: Path, *lines: str, name: str = "kelp") -> Distribution:
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "\n".join(["Metadata-Version: 2.4", f"Name: {name}", "Version: 1.0", *lines, ""])
    )
    return Distribution.at(info)


@pytest.mark.parametrize(
    ("lines", "licence"),
    [
        (["License-Expression: MIT OR Apache-2.0"], "MIT OR Apache-2.0"),
        (["Classifier: License :: OSI Approved :: BSD License"], "BSD-3-Clause"),
        (["License: MIT"], "MIT"),
        (["License: a page of words"], None),
        ([], None),
        (
            [
                "Classifier: License :: OSI Approved :: MIT License",
                "Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)",
            ],
            "GPL-3.0-only AND MIT",
        ),
    ],
)
def test_a_licence_is_read_wherever_a_package_says_it(
    tmp_path: Path, lines: list[str], licence: str | None
) -> None:
    assert licence_of(installed(tmp_path, *lines)) == licence


@pytest.mark.parametrize(
    "licence",
    [
        "MIT",
        "Apache-2.0 OR GPL-3.0-only",
        "MIT AND BSD-3-Clause",
        "(GPL-2.0-only OR MIT) AND ISC",
        "ISC AND (MIT)",
    ],
)
def test_what_asks_for_notices_only_may_be_anywhere(licence: str) -> None:
    assert licence_problem("kelp", licence, is_core=True) is None


@pytest.mark.parametrize(
    "licence",
    [
        "GPL-3.0-only",
        "AGPL-3.0-or-later",
        "MIT AND GPL-2.0-only",
        "(MIT OR ISC) AND AGPL-3.0-only",
        "GPL-2.0-only AND MIT OR AGPL-3.0-only",
        "LicenseRef-Proprietary",
        None,
    ],
)
def test_what_asks_more_or_says_nothing_may_be_nowhere(licence: str | None) -> None:
    problem = licence_problem("kelp", licence, is_core=False)
    assert problem is not None and problem.startswith("kelp: ")


@pytest.mark.parametrize("licence", sorted(WEAK))
def test_what_asks_something_of_its_changers_may_be_in_extras_and_not_in_the_core(licence: str) -> None:
    assert licence_problem("kelp", licence, is_core=False) is None
    assert licence_problem("kelp", licence, is_core=True) is not None


def test_no_strong_licence_is_among_those_allowed() -> None:
    assert [
        name for name in PERMISSIVE | WEAK if name.startswith(("GPL", "AGPL", "SSPL", "BUSL", "LicenseRef"))
    ] == []


def test_licences_are_counted() -> None:
    assert counted({"a": "MIT", "b": "ISC", "c": "MIT"}) == "1 ISC, 2 MIT"
