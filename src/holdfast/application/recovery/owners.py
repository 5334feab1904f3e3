"""Names of lease owners that tell, to others on the same machine, whether the owner is still alive."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

from holdfast.domain.record import Lease

_NAME = re.compile(
    r"(?P<task>[a-z0-9-]+):(?P<host>[^:]*):(?P<boot>[^:]*):(?P<room>[^:]*):(?P<pid>\d+):(?P<start>\d+)"
)
_START_FIELD = 22
#: States of processes that ended, and that their parents have not asked about yet.
_ENDED = ("Z", "X")


def own_name(task: str) -> str:
    """Name this process as one that does a task."""
    return ":".join((task, _host(), _boot(), _room(), str(os.getpid()), str(_start(os.getpid()) or 0)))


def process_text(owner: str) -> str:
    """Say which process an owner is; empty where its name does not tell."""
    named = _NAME.fullmatch(owner)
    return f"pid {named['pid']} on {named['host'] or 'an unnamed machine'}" if named else ""


def is_dead(owner: str) -> bool:
    """Tell whether an owner is certainly gone: a process of this machine that ended.

    One of another machine, or with a name of another form, may be alive for all that can be known here.
    """
    named = _NAME.fullmatch(owner)
    if named is None or named["host"] != _host():
        return False
    if named["boot"] != _boot():
        return bool(named["boot"] and _boot())
    if named["room"] != _room() or not named["room"]:
        return False
    start = _start(int(named["pid"]))
    if start is None:
        return not _exists(int(named["pid"]))
    return start != int(named["start"]) or _has_ended(int(named["pid"]))


def is_held(lease: Lease | None) -> bool:
    """Tell whether somebody has a workflow: the lease lives, and its owner is not certainly gone."""
    return lease is not None and lease.is_live and not is_dead(lease.owner)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname())[:40]


def _boot() -> str:
    """Answer what is different after each start of the machine; empty where that cannot be told."""
    return _text(Path("/proc/sys/kernel/random/boot_id"))[:8]


def _room() -> str:
    """Answer the space in which process numbers mean something: containers have their own."""
    try:
        return re.sub(r"\D", "", os.readlink("/proc/self/ns/pid"))
    except OSError:
        return ""


def _start(pid: int) -> int | None:
    """Answer when a process began, in ticks since the machine did; None if there is none."""
    fields = _fields(pid)
    return int(fields[_START_FIELD - 3]) if len(fields) > _START_FIELD - 3 else None


def _has_ended(pid: int) -> bool:
    """Tell whether a process is over and only its number is left."""
    state = next(iter(_fields(pid)), "")
    return state in _ENDED


def _fields(pid: int) -> list[str]:
    # The name of the program, in brackets, may hold anything.
    return _text(Path(f"/proc/{pid}/stat")).rpartition(")")[2].split()


def _exists(pid: int) -> bool:
    """Tell whether there is a process, also one of another user that the system hides."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
