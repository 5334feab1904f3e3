"""What must be in a wheel and an sdist, and what must not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

Members = Mapping[str, bytes]

#: Files that code reads beside itself: each kind must be there.
DATA = {
    "migrations of SQLite": r"holdfast/adapters/sqlite/migrations/\d+_\w+\.sql",
    "migrations of PostgreSQL": r"holdfast/adapters/postgres/migrations/\d+_\w+\.sql",
    "JSON schemas": r"holdfast/schemas/[\w-]+\.schema\.json",
    "the page": r"holdfast/server/ui/index\.html",
    "scripts of the page": r"holdfast/server/ui/pages/\w+\.js",
    "licences of vendored scripts": r"holdfast/server/ui/vendor/LICENSES\.txt",
    "the mark of typed packages": r"holdfast/py\.typed",
}
#: Files of a wheel's folder of metadata.
INFO = {
    "METADATA",
    "RECORD",
    "WHEEL",
    "entry_points.txt",
    "licenses/LICENSE",
    "licenses/NOTICE",
    "licenses/src/holdfast/server/ui/vendor/LICENSES.txt",
}
#: What an sdist has beside the source, so that whoever has it can build, test and judge.
BESIDE = {
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "NOTICE",
    "PKG-INFO",
    "README.md",
    "SECURITY.md",
    "mkdocs.yml",
    "pyproject.toml",
}
ROOMS_BESIDE = {"benchmarks", "docs", "examples", "release", "src", "tests"}
#: What an sdist takes from the folder above without being asked.
TAKEN_ALONG = {".gitignore"}
#: Traces of work: compiled modules, editors, stores, environments.
WASTE = re.compile(
    r"(^|/)(__pycache__|\.venvs?|\.holdfast|node_modules|\.DS_Store)(/|$)|\.(py[co]|swp|orig|rej)$"
)


def wheel_problems(members: Members, source: Members, places: tuple[str, ...]) -> list[str]:
    """Say what is wrong with a wheel.

    Args:
        members: its files.
        source: the files of the package that it was made of, by the same names.
        places: folders of the machine that made it, which nothing may tell of.
    """
    inside = {name: data for name, data in members.items() if ".dist-info/" not in name}
    info = {name.partition(".dist-info/")[2] for name in members if ".dist-info/" in name}
    return [
        *(f"{name} is not in the wheel" for name in sorted(source.keys() - inside.keys())),
        *(f"{name} does not belong into a wheel" for name in sorted(inside.keys() - source.keys())),
        *(
            f"{name} is not what the source has"
            for name in sorted(source)
            if inside.get(name, source[name]) != source[name]
        ),
        *(f"{name} is not in the metadata" for name in sorted(INFO - info)),
        *(f"{name} does not belong into the metadata" for name in sorted(info - INFO)),
        *(
            f"{kind} are not in the wheel"
            for kind, name in DATA.items()
            if not any(re.fullmatch(name, n) for n in inside)
        ),
        *_places_told(members, places),
    ]


def sdist_problems(members: Members, places: tuple[str, ...]) -> list[str]:
    """Say what is wrong with an sdist."""
    loose = {name for name in members if "/" not in name}
    rooms = {name.partition("/")[0] for name in members if "/" in name}
    return [
        *(f"{name} is not in the sdist" for name in sorted((BESIDE - loose) | (ROOMS_BESIDE - rooms))),
        *(
            f"{name} does not belong into an sdist"
            for name in sorted((loose - BESIDE - TAKEN_ALONG) | (rooms - ROOMS_BESIDE))
        ),
        *(f"{name} is waste" for name in sorted(members) if WASTE.search(name)),
        *_places_told(members, places),
    ]


def names_of(package: Path) -> list[str]:
    """Name the files of a package's folder as they are to be named in a wheel."""
    names = (path.relative_to(package.parent).as_posix() for path in package.rglob("*") if path.is_file())
    return sorted(name for name in names if not WASTE.search(name))


def _places_told(members: Members, places: tuple[str, ...]) -> list[str]:
    return [
        f"{name} tells of {place}"
        for name, data in sorted(members.items())
        for place in places
        # A name that goes on is another place: /src/project-2 is not /src/project.
        if re.search(re.escape(place.encode()) + rb"(?![\w-])", data)
    ]
