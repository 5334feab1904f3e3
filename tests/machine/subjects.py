"""The stores that are hurt: how processes write to each, how each is broken on purpose, what must be true."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.sqlite import database
from tests.adapters.postgres import server
from tests.process import children, postgres_children, sqlite_children
from tests.process.child import Child, Report, start
from tests.process.commits import Acknowledged

JOURNAL_BYTES = 65536
FILES, ROLLBACK, WAL = "files", "sqlite rollback", "sqlite wal"
SERVICE, SERVICE_SQLITE = "service on files", "service on sqlite"
POSTGRES = "postgresql"

#: What the processes that write to files at once do.
FILES_PLANS: tuple[tuple[dict[str, Any], ...], ...] = (
    ({},),
    ({"workflows": ("WF-0", "WF-1", "WF-2", "WF-3")},),
    ({"workflows": ("WF-0", "WF-1"), "keyframes": True, "prunes": True, "erases": True},),
    ({"workflows": ("WF-0",)}, {"workflows": ("WF-1", "WF-2")}),
)
SQLITE_PLANS: tuple[tuple[dict[str, Any], ...], ...] = (
    ({},),
    ({"workflows": ("WF-0", "WF-1")}, {"workflows": ("WF-2",)}),
    ({"workflows": ("WF-0", "WF-1"), "keeps_house": True},),
    ({"closes": True},),
)
DRIVER_OF = {ROLLBACK: ("sqlite3", "rollback"), WAL: ("apsw", "wal")}


@dataclass(slots=True)
class Told(Acknowledged):
    """What writers were told; signed heads of the trail among it."""

    heads: list[tuple[int, str]] = field(default_factory=list)
    errors: int = 0

    def note(self, line: str) -> None:
        word, _, number, *rest = line.split()
        if word == "head":
            self.heads.append((int(number), rest[0]))
        elif word == "error":
            self.errors += 1
        else:
            Acknowledged.note(self, line)

    def note_all(self, lines: Iterable[str]) -> None:
        """Take in what processes reported."""
        for line in lines:
            self.note(line)


class Subject(Protocol):
    """A kind of store as the harnesses need it; `folder` is where it lies."""

    name: str
    size_bytes: int

    def prepare(self, folder: str, *, lies: bool) -> None:
        """Make what has to be there before anybody writes."""

    def writers(self, folder: str, variant: int, *, lies: bool) -> list[Child]:
        """Start processes that write until they are killed."""

    def end(self, folder: str) -> None:
        """End what goes on working after its writers were killed."""

    def check(self, folder: str, told: Told) -> list[str]:
        """Open the store as the next process would; say what is wrong."""


def quietly(report: Report, stop: int, write: Callable[..., None], *arguments: Any) -> None:
    """Write without a word: when its file system dies, so does the writer."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    write(report, stop, *arguments)


class UnsyncedDisk(Disk):
    """Never syncs the journal, though everything else: a negative control."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._rings: set[int] = set()

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        handle = super().open(path, write=write, create=create)
        self._rings.discard(handle)
        if path.startswith("journal/ring") and not path.endswith(".tmp"):
            self._rings.add(handle)
        return handle

    def overwrite(self, handle: int, data: bytes, offset: int) -> None:
        # What is hurried may be on the device by the time the power is cut, as if it had been synced.
        self.write(handle, data, offset)

    def sync(self, handle: int) -> None:
        if handle not in self._rings:
            super().sync(handle)


def never_sync_sqlite() -> None:
    """Let SQLite believe that nothing needs to be synced: a negative control."""
    kept = [one for one in database._SETTINGS if "synchronous" not in one]
    setattr(database, "_SETTINGS", (*kept, "pragma synchronous = off"))  # noqa: B010


@dataclass
class Files:
    """The store in a folder."""

    name: str = FILES
    size_bytes: int = 96 * 1024 * 1024

    def prepare(self, folder: str, *, lies: bool) -> None:
        pass

    def writers(self, folder: str, variant: int, *, lies: bool) -> list[Child]:
        root = f"{folder}/store"
        disk = UnsyncedDisk(root) if lies else None
        plans = FILES_PLANS[variant % len(FILES_PLANS)]
        wanted = [children.Plan(root, journal_bytes=JOURNAL_BYTES, **plan) for plan in plans]
        return [start(quietly, children.write_until_killed, plan, disk) for plan in wanted]

    def end(self, folder: str) -> None:
        pass

    def check(self, folder: str, told: Told) -> list[str]:
        root = f"{folder}/store"
        if not os.path.exists(f"{root}/holdfast.json"):
            return [f"the store is gone with {told.count} acknowledged commits"] if told.count else []
        # Recovering again and again changes nothing and leaves nothing behind.
        times = 3 if told.count % 5 == 0 else 1
        found, seen = list[str](), list[set[str]]()
        for number in range(times):
            label = f"recovery {number + 1}"
            found += children.verify(root, told, journal_bytes=JOURNAL_BYTES, label=label)
            seen.append({str(path) for path in Path(root).rglob("*")})
        return [*found, *(f"left behind: {sorted(more - seen[0])}" for more in seen[1:] if more - seen[0])]


@dataclass
class Sqlite:
    """The store in one file, with one of both journals."""

    name: str
    size_bytes: int = 96 * 1024 * 1024

    def plan(self, folder: str, **more: Any) -> sqlite_children.Plan:
        return sqlite_children.Plan(f"{folder}/store.db", *DRIVER_OF[self.name], **more)

    def prepare(self, folder: str, *, lies: bool) -> None:
        pass

    def writers(self, folder: str, variant: int, *, lies: bool) -> list[Child]:
        plans = SQLITE_PLANS[variant % len(SQLITE_PLANS)]
        return [start(quietly, write_to_sqlite, self.plan(folder, **plan), lies) for plan in plans]

    def end(self, folder: str) -> None:
        pass

    def check(self, folder: str, told: Told) -> list[str]:
        plan = self.plan(folder)
        if not os.path.exists(plan.path):
            return [f"the file is gone with {told.count} acknowledged commits"] if told.count else []
        if not told.count:
            # Perhaps not a database yet: to whoever opens it next it is a new one.
            sqlite_children.open_store(plan).close()
        return sqlite_children._verify(plan, told)


def write_to_sqlite(report: Report, stop: int, plan: sqlite_children.Plan, lies: bool) -> None:
    """Write until killed; a liar syncs nothing."""
    if lies:
        never_sync_sqlite()
    sqlite_children.write_until_killed(report, stop, plan)


@dataclass
class Postgres:
    """An embedded server whose data lies in the folder."""

    name: str = POSTGRES
    size_bytes: int = 400 * 1024 * 1024
    #: A server that was made once and is copied.
    template: str = ""
    reconnect_seconds: int = 20

    def url(self, folder: str) -> str:
        return (
            f"postgresql+embedded:{folder}/server?reconnect_seconds={self.reconnect_seconds}&lock_seconds=10"
        )

    def prepare(self, folder: str, *, lies: bool) -> None:
        self.template = self.template or str(server.embedded_folder())
        subprocess.run(["cp", "-a", self.template, f"{folder}/server"], check=True)
        if lies:
            with open(f"{folder}/server/data/postgresql.conf", "a") as settings:
                settings.write("fsync = off\n")
        subprocess.run(["sync", "-f", folder], check=True)

    def writers(self, folder: str, variant: int, *, lies: bool) -> list[Child]:
        names = [("WF-0", "WF-1"), ("WF-2",)][: 1 + variant % 2]
        plans = [
            {"url": self.url(folder), "writer": f"p{os.urandom(4).hex()}", "workflows": workflows}
            for workflows in names
        ]
        return [start(quietly, postgres_children.write_in_threads, plan) for plan in plans]

    def end(self, folder: str) -> None:
        """Kill the server and its processes: all those that work in its folder."""
        while pids := _working_in(f"{folder}/server/data"):
            for pid in pids:
                _kill(pid)

    def check(self, folder: str, told: Told) -> list[str]:
        return postgres_children.examine(self.url(folder), told)


def _working_in(folder: str) -> list[int]:
    """Name the processes whose working folder is this one."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            place = os.readlink(f"/proc/{name}/cwd")
            state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if place == folder and state != "Z":
            found.append(int(name))
    return found


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
