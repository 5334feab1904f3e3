"""The interpreters of this machine that a release is tried with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from release.metadata import TESTED_PYTHONS

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


def found_pythons() -> dict[str, str]:
    """Answer an interpreter for each version that can be tried here, by two numbers; this one's is first."""
    found = {HERE: sys.executable}
    for version in TESTED_PYTHONS:
        for program in _candidates(version):
            if version not in found and _is(program, version):
                found[version] = program
    return found


def _candidates(version: str) -> Iterator[str]:
    yield from filter(None, [shutil.which(f"python{version}")])
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from map(str, sorted(kept.glob(f"{version}.*/bin/python")))


def _is(program: str, version: str) -> bool:
    """Ask a program which version it is: one that only looks for another may find none."""
    asked = [program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(asked, capture_output=True, text=True)
    return done.returncode == 0 and done.stdout.strip() == version
