"""A wheel that lacks what it needs: the trial that calls it good is worth nothing."""

from __future__ import annotations

import re
import time
import zipfile
from pathlib import Path

from release.build import DIST, ROOT
from release.environment import Environment, TrialError
from release.interpreters import HERE
from release.outcome import Outcome

#: Left out of the wheel: nothing of it is imported, so an installation does not notice.
_LEFT_OUT = re.compile(r"holdfast/adapters/sqlite/migrations/.*\.sql")


def tried(folder: Path, interpreter: str) -> Outcome:
    """Install a wheel without the migrations of SQLite; that must be found out by using it."""
    started = time.monotonic()
    (wheel,) = DIST.glob("*.whl")
    broken = folder / wheel.name
    without(wheel, broken, _LEFT_OUT)
    environment = Environment(folder / "control")
    environment.make(interpreter)
    environment.install(str(broken))
    problem = "a wheel without the migrations of SQLite is called good"
    try:
        environment.run("smoke.py", "../README.md", files=(ROOT / "README.md",))
    except TrialError:
        problem = ""
    seconds = round(time.monotonic() - started, 1)
    return Outcome("control", HERE, seconds, {}, "a broken wheel is refused\n", problem)


def without(wheel: Path, target: Path, left_out: re.Pattern[str]) -> None:
    """Copy a wheel without some of its files; its list of them is mended, so that it still installs."""
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith(".dist-info/RECORD"):
                lines = data.decode().splitlines(keepends=True)
                data = "".join(line for line in lines if not left_out.match(line)).encode()
            if not left_out.match(name):
                copy.writestr(name, data)
