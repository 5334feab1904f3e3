"""What is missing from an archive is named, and so is what does not belong there."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.build import ROOT
from release.contents import BESIDE, INFO, ROOMS_BESIDE, names_of, sdist_problems, wheel_problems

SOURCE = {
    name: b"x"
    for name in (
        "holdfast/__init__.py",
        "holdfast/py.typed",
        "holdfast/adapters/sqlite/migrations/0001_store.sql",
        "holdfast/adapters/postgres/migrations/0001_tables.sql",
        "holdfast/schemas/event.schema.json",
        "holdfast/server/ui/index.html",
        "holdfast/server/ui/pages/run.js",
        "holdfast/server/ui/vendor/LICENSES.txt",
    )
}
WHEEL = SOURCE | {f"holdfast-1.0.dist-info/{name}": b"x" for name in INFO}
SDIST = {name: b"x" for name in BESIDE} | {f"{room}/file": b"x" for room in ROOMS_BESIDE}
HERE = ("/src/project",)


def test_a_wheel_that_is_as_it_should_be_has_no_problem() -> None:
    assert wheel_problems(WHEEL, SOURCE, HERE) == []


@pytest.mark.parametrize("name", sorted(WHEEL))
def test_whatever_is_missing_from_a_wheel_is_named(name: str) -> None:
    left = {other: data for other, data in WHEEL.items() if other != name}
    assert any(name.rpartition(".dist-info/")[2] in problem for problem in wheel_problems(left, SOURCE, HERE))


def test_data_that_neither_source_nor_wheel_has_is_missed() -> None:
    left = {name: data for name, data in WHEEL.items() if "migrations" not in name}
    source = {name: data for name, data in SOURCE.items() if "migrations" not in name}
    assert wheel_problems(left, source, HERE) == [
        "migrations of SQLite are not in the wheel",
        "migrations of PostgreSQL are not in the wheel",
    ]


@pytest.mark.parametrize(
    "name", ["tests/test_house.py", "holdfast/old.py", "holdfast-1.0.dist-info/direct_url.json"]
)
def test_what_does_not_belong_into_a_wheel_is_named(name: str) -> None:
    assert len(wheel_problems(WHEEL | {name: b"x"}, SOURCE, HERE)) == 1


def test_a_file_that_is_not_that_of_the_source_is_named() -> None:
    changed = WHEEL | {"holdfast/__init__.py": b"y"}
    assert wheel_problems(changed, SOURCE, HERE) == ["holdfast/__init__.py is not what the source has"]


def test_a_place_of_the_machine_is_found_in_any_file_and_a_longer_name_is_another_place() -> None:
    told = {"holdfast/__init__.py": b"# in /src/project/holdfast"}
    other = {"holdfast/__init__.py": b"# in /src/project-2"}
    assert wheel_problems(WHEEL | told, SOURCE | told, HERE) == ["holdfast/__init__.py tells of /src/project"]
    assert wheel_problems(WHEEL | other, SOURCE | other, HERE) == []


def test_an_sdist_that_is_as_it_should_be_has_no_problem() -> None:
    assert sdist_problems(SDIST, HERE) == []


@pytest.mark.parametrize("name", sorted(SDIST))
def test_whatever_is_missing_from_an_sdist_is_named(name: str) -> None:
    left = {other: data for other, data in SDIST.items() if other != name}
    assert sdist_problems(left, HERE) == [f"{name.partition('/')[0]} is not in the sdist"]


@pytest.mark.parametrize(
    "name", ["notes.txt", "build/x", "src/a.pyc", "tests/__pycache__/a", "docs/.page.md.swp"]
)
def test_what_does_not_belong_into_an_sdist_is_named(name: str) -> None:
    assert len(sdist_problems(SDIST | {name: b"x"}, HERE)) == 1


def test_the_package_is_listed_without_what_was_compiled(tmp_path: Path) -> None:
    package = tmp_path / "holdfast"
    (package / "__pycache__").mkdir(parents=True)
    for name in ("a.py", "__pycache__/a.cpython-311.pyc", "a.sql"):
        (package / name).touch()
    assert names_of(package) == ["holdfast/a.py", "holdfast/a.sql"]
    assert "holdfast/py.typed" in names_of(ROOT / "src" / "holdfast")
