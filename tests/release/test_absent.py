"""Without extras: whoever asks for what one brings is told its name."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from release.build import ROOT
from release.inside import absent

#: All that is installed with us. On newer versions of Python the last one is in the standard library.
CORE = ("click", "ormsgpack", *(["backports.zstd"] if sys.version_info < (3, 14) else []))
EXTRAS = sorted({*absent.ASK, *absent.COMMANDS, *absent.DONE_OTHERWISE})


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what an installation without extras has, and nothing else of this environment."""
    folder = tmp_path_factory.mktemp("packages")
    for name in CORE:
        installed = distribution(name)
        tops = {file.parts[0] for file in installed.files or () if file.parts[0] != ".."}
        for top in tops:
            (folder / top).symlink_to(Path(str(installed.locate_file(top))).resolve())
    return folder


def asked(packages: Path, *paths: str, extras: list[str]) -> subprocess.CompletedProcess[str]:
    """Ask in an interpreter that sees the folder and the source only."""
    path = os.pathsep.join([str(ROOT / "src"), str(packages), *paths])
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE_", "COV_"))}
    return subprocess.run(
        [sys.executable, "-S", str(ROOT / "release" / "inside" / "absent.py"), *extras],
        env=env | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


def test_every_extra_that_is_not_there_is_named_by_a_stable_error(packages: Path) -> None:
    done = asked(packages, extras=EXTRAS)
    assert done.returncode == 0, done.stderr


def test_an_extra_that_is_there_is_missed_by_nobody(packages: Path) -> None:
    here = str(Path(str(distribution("pytest").locate_file(""))))
    done = asked(packages, here, extras=["cbor", "redaction"])
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["cbor: nothing was missed", "redaction: nothing was missed"]


def test_an_extra_that_nobody_tries_is_told(packages: Path) -> None:
    done = asked(packages, extras=["kelp"])
    assert done.returncode == 1 and "nobody knows what these bring: kelp" in done.stderr
