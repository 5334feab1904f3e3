"""How much of the memory that may be used is in use.

Asked are the limits that were set: those of the control groups that the process is in (version 2 or 1), and
the limit of its address space (`ulimit -v`). Where none is set, the memory of the machine counts. All of it
is read from Linux's own files. macOS and Windows have neither control groups nor such files, so nothing is
told there, and a trigger on memory pressure never fires.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath


@dataclass(frozen=True, slots=True)
class _GroupFiles:
    """Names of what a control group tells of its memory."""

    limit: str
    usage: str
    reclaimable: str


_VERSION_2 = _GroupFiles("memory.max", "memory.current", "inactive_file")
_VERSION_1 = _GroupFiles("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


class MemoryGauge:
    """Tells the share of memory in use, and reads it anew at most once in a while; one serves many runs.

    Args:
        root: where `proc` and `sys` are.
        clock: seconds that only grow.
        fresh_seconds: for how long an answer is given again.
    """

    def __init__(
        self,
        root: Path = Path("/"),
        clock: Callable[[], float] = time.monotonic,
        fresh_seconds: float = 1.0,
    ) -> None:
        self._root = root
        self._clock = clock
        self._fresh_seconds = fresh_seconds
        self._lock = threading.Lock()
        self._share: float | None = None
        self._stale_at: float | None = None

    def __call__(self) -> float | None:
        """Tell the share, 0 to 1; None where nothing can be told."""
        now = self._clock()
        with self._lock:
            if self._stale_at is None or now >= self._stale_at:
                self._share = memory_share(self._root)
                self._stale_at = now + self._fresh_seconds
            return self._share


def address_limit_bytes() -> int | None:
    """Tell the limit of the process's address space, None if there is none."""
    if sys.platform == "win32":
        return None
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def memory_share(
    root: Path = Path("/"), address_limit: Callable[[], int | None] = address_limit_bytes
) -> float | None:
    """Tell the share of memory in use, of the limit that is nearest to be met.

    Args:
        root: where `proc` and `sys` are.
        address_limit: tells the limit of the address space.

    Returns:
        0 to 1, or None where nothing can be told.
    """
    total, available = _machine_bytes(root)
    limited = list(_group_shares(root, total))
    space = _address_space_share(root, address_limit())
    if space is not None:
        limited.append(space)
    if limited:
        return min(max(limited), 1.0)
    return 1 - available / total if total is not None and available is not None else None


def _group_shares(root: Path, machine_bytes: int | None) -> Iterator[float]:
    """Yield the share of each limited group; every group binds those inside it."""
    for folder, files in _groups(root):
        limit, usage = _number(folder / files.limit), _number(folder / files.usage)
        # Version 1 says "no limit" with a number that no machine reaches.
        if not limit or usage is None or (machine_bytes is not None and limit >= machine_bytes):
            continue
        # Files that were read once fill what nobody else needs, and go when somebody does.
        reclaimable = _fields(folder / "memory.stat").get(files.reclaimable, 0)
        yield max(usage - reclaimable, 0) / limit


def _groups(root: Path) -> Iterator[tuple[Path, _GroupFiles]]:
    """Yield the groups that the process is in, inner and outer."""
    mount = root / "sys/fs/cgroup"
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            yield from ((folder, _VERSION_2) for folder in _lineage(mount, path))
        elif "memory" in controllers.split(","):
            yield from ((folder, _VERSION_1) for folder in _lineage(mount / "memory", path))


def _lineage(mount: Path, path: str) -> Iterator[Path]:
    """Yield the mount and every folder down to a group; inside a container the path may lead out of it."""
    yield mount
    parts = PurePosixPath(path).parts[1:]
    if ".." not in parts:
        yield from (mount.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1))


def _address_space_share(root: Path, limit_bytes: int | None) -> float | None:
    used = _fields(root / "proc/self/status").get("VmSize")
    return used * 1024 / limit_bytes if used is not None and limit_bytes else None


def _machine_bytes(root: Path) -> tuple[int | None, int | None]:
    """Read the memory of the machine, and how much of it is available without swapping."""
    told = _fields(root / "proc/meminfo")
    total, available = told.get("MemTotal"), told.get("MemAvailable")
    return (total * 1024 if total else None), (available * 1024 if available is not None else None)


def _fields(path: Path) -> dict[str, int]:
    """Read a file of names and numbers, whatever stands after them."""
    pairs = (line.split()[:2] for line in _text(path).splitlines())
    return {pair[0].rstrip(":"): int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: Path) -> str:
    """Read a file; one that cannot be read tells nothing."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
