"""Empty environments outside of the source, and programs that run in them with nobody to talk to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

INSIDE = Path(__file__).parent / "inside"
UV = (sys.executable, "-m", "uv")
INSTALL_SECONDS_MAX = 600
RUN_SECONDS_MAX = 300


class TrialError(Exception):
    """Something that was tried does not do what it should."""


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment in a folder of its own."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "env" / "bin" / "python"

    def make(self, python: str) -> None:
        """Make it, with an interpreter and nothing else."""
        self.folder.mkdir(parents=True)
        _uv("venv", "--quiet", "--no-config", "--python", python, str(self.folder / "env"))

    def install(self, *what: str, is_lowest: bool = False) -> None:
        """Install archives and requirements, with the newest versions or the lowest that are declared."""
        resolution = "lowest-direct" if is_lowest else "highest"
        options = [
            "--quiet",
            "--no-config",
            "--strict",
            "--resolution",
            resolution,
            "--python",
            str(self.python),
        ]
        _uv("pip", "install", *options, *what)

    def installed(self) -> dict[str, str]:
        """Answer the versions of what is there."""
        listed = _uv(
            "pip", "list", "--quiet", "--no-config", "--format", "json", "--python", str(self.python)
        )
        return {each["name"]: each["version"] for each in json.loads(listed)}

    def packages(self) -> Path:
        """Answer the folder that packages are installed into."""
        (found,) = (self.folder / "env" / "lib").glob("python*/site-packages")
        return found

    def run(self, program: str, *args: str, files: tuple[Path, ...] = ()) -> str:
        """Run one of the programs of `inside` in a new folder, without a network where that can be had.

        Raises:
            TrialError: it did not end well; the text is what it said.
        """
        work = self.folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(INSIDE, self.folder / "inside", dirs_exist_ok=True)
        work.mkdir()
        for file in files:
            shutil.copy(file, self.folder)
        inside = self.folder / "inside"
        command = [str(self.python), "-I", str(inside / program), *args]
        if is_alone():
            command = ["unshare", "--net", "--", str(self.python), "-I", str(inside / "alone.py"), *command]
        return _ended(command, work, _variables(work), RUN_SECONDS_MAX)


def is_alone() -> bool:
    """Tell whether programs get a network of their own, where nobody else is; only root can make one."""
    return os.geteuid() == 0 and shutil.which("unshare") is not None


def _variables(work: Path) -> dict[str, str]:
    """Answer the variables of a clean login: nothing of the checkout, nothing of its owner."""
    own = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TERM") if name in os.environ}
    return {"PATH": os.defpath, "HOME": str(work), "TMPDIR": os.environ.get("TMPDIR", "/tmp"), **own}


def _uv(*command: str) -> str:
    return _ended([*UV, *command], None, dict(os.environ), INSTALL_SECONDS_MAX)


def _ended(command: list[str], folder: Path | None, variables: dict[str, str], seconds: float) -> str:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired as hung:
        raise TrialError(f"{' '.join(command)} took more than {seconds:.0f} s") from hung
    if done.returncode != 0:
        raise TrialError(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
