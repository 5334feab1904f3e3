"""What an extra needs is read off the metadata, and every extra is known to those who try it."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement

from release.build import ROOT
from release.declared import FOR_DEVELOPERS, extras, lowest, needed
from release.inside import absent, present

METADATA = b"""Metadata-Version: 2.4
Name: holdfast
Version: 1.0
Provides-Extra: dev
Provides-Extra: embedded
Provides-Extra: postgres
Requires-Dist: click>=8.1
Requires-Dist: zstd>=1.0; python_version < "3.14"
Requires-Dist: psycopg[binary]>=3.2; extra == "postgres"
Requires-Dist: holdfast[postgres]; extra == "embedded"
Requires-Dist: server>=0.6; extra == "embedded"
"""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {*PROJECT["optional-dependencies"]}
#: How a translation says which versions of a framework it takes.
RANGE = re.compile(r'framework\("([\w-]+)", "([\d.]+)", "([\d.]+)", extra="([\w-]+)"\)')


def names(extra: str, python: str = "3.11") -> list[str]:
    return [str(each) for each in needed(METADATA, extra, python=python)]


def test_without_an_extra_only_what_is_always_needed_is() -> None:
    assert names("") == ["click>=8.1", "zstd>=1.0"]
    assert names("", "3.14") == ["click>=8.1"]


def test_an_extra_that_names_another_needs_what_that_needs() -> None:
    assert names("embedded") == ["click>=8.1", "psycopg[binary]>=3.2", "server>=0.6", "zstd>=1.0"]


def test_extras_of_developers_are_not_for_users() -> None:
    assert extras(METADATA) == ["embedded", "postgres"]
    assert EXTRAS >= FOR_DEVELOPERS


def test_the_lower_bound_is_found_and_so_is_that_there_is_none() -> None:
    assert lowest(Requirement("a>=1.2,<2")) == "1.2"
    assert lowest(Requirement("a<2")) is None


def test_everything_that_is_declared_has_a_lower_bound() -> None:
    declared = [
        *PROJECT["dependencies"],
        *(each for extra in PROJECT["optional-dependencies"].values() for each in extra),
    ]
    foreign = [each for each in map(Requirement, declared) if each.name != "holdfast"]
    assert len(foreign) > 40
    assert [str(each) for each in foreign if lowest(each) is None] == []


def test_every_extra_is_tried_where_it_is_and_where_it_is_not() -> None:
    pages = {page.stem.replace("_", "-") for page in (ROOT / "docs" / "integrations").glob("*.md")}
    assert {*absent.ASK, *absent.COMMANDS, *absent.DONE_OTHERWISE} == EXTRAS - FOR_DEVELOPERS
    assert EXTRAS - FOR_DEVELOPERS - {*present.USE} == pages - {"no-framework"}


def test_translations_take_the_versions_that_their_extras_install() -> None:
    sources = (ROOT / "src" / "holdfast" / "integrations").glob("*.py")
    said = {found for path in sources for found in RANGE.findall(path.read_text("utf-8"))}
    assert len(said) > 9
    declared = {
        (
            each.name,
            *(spec.version for spec in sorted(each.specifier, key=lambda spec: spec.operator, reverse=True)),
            extra,
        )
        for extra, lines in PROJECT["optional-dependencies"].items()
        for each in map(Requirement, lines)
    }
    assert said - declared == set()
