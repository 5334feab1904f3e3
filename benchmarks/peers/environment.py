"""An environment of its own for each peer: what it needs must not meddle with what Holdfast needs."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

PLACE = Path("build/peers")
_HERE = Path(__file__).parent


class EnvironmentUnavailableError(Exception):
    """The packages of a peer could not be installed here."""


def python_of(peer: str) -> Path:
    """Make the environment if it is missing or was made from other pins; tell its interpreter."""
    requirements = _HERE / f"{peer}_requirements.txt"
    folder = PLACE.resolve() / f"{peer}-venv"
    python, mark = folder / "bin" / "python", folder / ".made-from"
    wanted = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()
    if not mark.exists() or mark.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        for command in _commands(folder, python, requirements):
            _run(command, peer)
        mark.write_text(wanted)
    return python


def _run(command: list[str], peer: str) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        told = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        why = next((line for line in reversed(told) if "rror" in line), told[-1])
        raise EnvironmentUnavailableError(f"the environment of {peer} cannot be made: {why}") from error


def _commands(folder: Path, python: Path, requirements: Path) -> list[list[str]]:
    if uv := shutil.which("uv"):
        return [
            [uv, "venv", "--quiet", "--python", sys.executable, str(folder)],
            [uv, "pip", "install", "--quiet", "--python", str(python), "-r", str(requirements)],
        ]
    return [
        [sys.executable, "-m", "venv", str(folder)],
        [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(requirements)],
    ]
