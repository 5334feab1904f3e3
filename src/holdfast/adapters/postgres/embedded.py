"""A PostgreSQL server with nothing to install: started by its first user, stopped by its last.

    PATH/data       the server's own data folder; its socket is in there, and nothing else listens
    PATH/lock       held by whoever starts or stops the server
    PATH/users      held, shared, by every process that uses it: the last one to leave stops the server

A lock goes with the process that held it, so a killed user neither blocks others nor counts as one. A server
left behind by a killed last user goes on until the next one leaves; one that died is started by the next who
needs it.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import re
import shutil
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.adapters.postgres import programs
from holdfast.adapters.postgres.programs import Programs
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointReadError,
    DiskFullError,
    PermissionDeniedError,
    StoreNotFoundError,
)

SUPERUSER = "postgres"
DATABASE = "postgres"
PORT = "5432"
SOCKET = f".s.PGSQL.{PORT}"
SERVER_LOG = "server.log"

_SOCKET_PATH_BYTES_MAX = 107 if os.path.exists("/proc/self/fd") else 103
_LOG_PREFIX = re.compile(r"^.* \[[0-9]+\] ")
_LOG_LINES = 2
_LOG_BYTES_MAX = 10 * 1024 * 1024
_START_ATTEMPTS = 40
_PAUSE_SECONDS = 0.25
_STOP_SECONDS = "5"

#: Durability stays as PostgreSQL has it: fsync, full_page_writes and synchronous_commit are on.
_SETTINGS = """
# Written by Holdfast: the socket lies in this folder, which only its owner may enter.
listen_addresses = ''
unix_socket_directories = '.'
unix_socket_permissions = 0700
"""


class EmbeddedServer:
    """One process's part in a server that all users of a folder share."""

    def __init__(self, path: str) -> None:
        self._root = Path(os.path.abspath(path))
        self._data = self._root / "data"
        self._users: int | None = None
        self._folder: int | None = None

    def enter(self, *, create: bool) -> None:
        """Count as a user, and see to it that the server runs.

        Raises:
            StoreNotFoundError: there is no data, and none is to be created.
            CheckpointReadError: the server does not start; says what its log says.
        """
        if not create and not (self._data / "PG_VERSION").exists():
            raise StoreNotFoundError("there is no PostgreSQL data folder", place=str(self._root))
        with _faults(str(self._root)):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock():
                users = _locked(self._root / "users", fcntl.LOCK_SH)
                try:
                    self._initialise()
                    self._start()
                    self._folder = os.open(self._data, os.O_RDONLY | os.O_DIRECTORY)
                except BaseException:
                    os.close(users)
                    raise
                self._users = users
        _ENTERED.add(self)

    def parameters(self) -> dict[str, str]:
        """Tell how to connect, after starting the server if it is down."""
        if self._users is None:
            self.enter(create=False)
        with _faults(str(self._root)), self._lock():
            self._start()
        known = {"port": PORT, "user": SUPERUSER, "dbname": DATABASE, "application_name": "holdfast"}
        return {"host": self._socket_folder(), **known}

    def leave(self) -> None:
        """Stop counting as a user; stop the server if nobody else does. Idempotent."""
        if self._users is None:
            return
        if not self._root.exists():
            self.forget()
            return
        with _faults(str(self._root)), self._lock():
            users, self._users = self._users, None
            with suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._stop()
            os.close(users)
        self._close_folder()

    def forget(self) -> None:
        """Let go of what a fork copied, without touching what it stands for: the parent goes on using it."""
        if self._users is not None:
            os.close(self._users)
        self._users = None
        self._close_folder()

    # -- starting and stopping; the lock is held ----------------------------------------------

    def _initialise(self) -> None:
        """Make the data folder, under another name until it is complete."""
        if self._data.exists():
            return
        unfinished = self._root / "data.new"
        if unfinished.exists():
            shutil.rmtree(unfinished)
        unfinished.mkdir(mode=0o700)
        user, group = programs.owner_of(self._data)
        if os.geteuid() == 0:
            os.chown(unfinished, user, group)
        tools = Programs(programs.choose(unfinished), unfinished, user, group)
        done = tools.run(
            *("initdb", "--username", SUPERUSER, "--auth=trust", "--encoding=UTF8", "--locale=C"),
            *("--no-instructions", "--data-checksums"),
        )
        if done.returncode != 0:
            raise _failed("the data folder cannot be made", done.stdout, self._root)
        with open(unfinished / "postgresql.conf", "a", encoding="utf-8") as settings:
            settings.write(_SETTINGS)
            settings.flush()
            os.fsync(settings.fileno())
        os.rename(unfinished, self._data)
        _sync_folder(self._root)

    def _start(self) -> None:
        """Start the server unless it runs. After a crash the dead one's children may need a moment to go."""
        for _ in range(_START_ATTEMPTS):
            if self._is_running():
                return
            self._clear_stale_pid()
            self._cut_log()
            done = self._programs().run("pg_ctl", "start", "--wait", "--silent", "--log", SERVER_LOG)
            if done.returncode == 0:
                return
            # The mark of a server that is just going, or one that took the start ill.
            if self.pid() is None:
                break
            time.sleep(_PAUSE_SECONDS)
        raise _failed("the PostgreSQL server does not start", self._log_end() or done.stdout, self._root)

    def _stop(self) -> None:
        """Stop the server; one that just recovers from a crash may miss being asked, and is ended then.

        What it acknowledged is in its log, and the next start reads that.
        """
        for mode in ("fast", "immediate"):
            if self._is_running():
                self._programs().run(
                    "pg_ctl", "stop", "--wait", "--silent", "--timeout", _STOP_SECONDS, "--mode", mode
                )

    def _programs(self) -> Programs:
        user, group = programs.owner_of(self._data)
        return Programs(programs.choose(self._data), self._data, user, group)

    def _is_running(self) -> bool:
        pid = self.pid()
        return pid is not None and _is_alive(pid) and _works_in(pid, self._data)

    def pid(self) -> int | None:
        """Read which process the server is, or was."""
        try:
            return int((self._data / "postmaster.pid").read_text().splitlines()[0])
        except (FileNotFoundError, IndexError, ValueError):
            return None

    def _clear_stale_pid(self) -> None:
        """Remove the marks of a dead server whose number is in use: PostgreSQL would believe them.

        Another process may have got the number, or nobody has asked yet how the server ended.
        """
        pid = self.pid()
        if pid is not None and _is_alive(pid) and not self._has_processes():
            for mark in (f"{SOCKET}.lock", "postmaster.pid"):
                (self._data / mark).unlink(missing_ok=True)

    def _has_processes(self) -> bool:
        """Whether a process of a server works on the data, as far as that can be seen here."""
        if not os.path.isdir("/proc/self"):
            return True
        return any(_works_in(int(name), self._data) for name in os.listdir("/proc") if name.isdigit())

    def _cut_log(self) -> None:
        log = self._data / SERVER_LOG
        with suppress(FileNotFoundError):
            if log.stat().st_size > _LOG_BYTES_MAX:
                log.replace(log.with_suffix(".old"))

    def _log_end(self) -> bytes:
        try:
            return (self._data / SERVER_LOG).read_bytes()[-4000:]
        except OSError:
            return b""

    # -- what this process holds --------------------------------------------------------------

    @contextmanager
    def _lock(self) -> Iterator[None]:
        handle = _locked(self._root / "lock", fcntl.LOCK_EX)
        try:
            yield
        finally:
            os.close(handle)

    def _socket_folder(self) -> str:
        """Name the folder of the socket; the path of a socket may be about 100 bytes long, no more."""
        if len(os.fsencode(self._data / SOCKET)) <= _SOCKET_PATH_BYTES_MAX:
            return str(self._data)
        if os.path.exists("/proc/self/fd"):
            return f"/proc/self/fd/{self._folder}"
        raise CheckpointReadError(
            "the path is too long for a socket", place=str(self._root), hint="Choose a shorter one."
        )

    def _close_folder(self) -> None:
        if self._folder is not None:
            os.close(self._folder)
        self._folder = None


_ENTERED: weakref.WeakSet[EmbeddedServer] = weakref.WeakSet()


def _leave_all() -> None:
    """Leave what was not left: a process that ends uses nothing any more."""
    for server in list(_ENTERED):
        with suppress(CheckpointError):
            server.leave()


atexit.register(_leave_all)


def _locked(path: Path, kind: int) -> int:
    """Open a file and hold a lock on it until it is closed."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, kind)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _works_in(pid: int, folder: Path) -> bool:
    """Whether a process has a folder for its own; True where the system does not tell."""
    if not os.path.isdir("/proc/self"):
        return True
    try:
        return os.path.samefile(f"/proc/{pid}/cwd", folder)
    except OSError:
        return False


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _failed(what: str, output: bytes, root: Path) -> CheckpointError:
    lines = [_LOG_PREFIX.sub("", line) for line in output.decode(errors="replace").splitlines()]
    why = "; ".join([line for line in lines if line.strip()][-_LOG_LINES:]) or "no reason was given"
    kind = DiskFullError if "No space left" in why else CheckpointReadError
    return kind(f"{what}: {why}", place=str(root), hint=f"See {root}/data/{SERVER_LOG}.")


@contextmanager
def _faults(place: str) -> Iterator[None]:
    """Say what the file system refused in our words."""
    try:
        yield
    except PermissionError as fault:
        raise PermissionDeniedError(
            f"the folder cannot be used ({fault.strerror})", place=fault.filename or place
        ) from fault
    except OSError as fault:
        raise CheckpointReadError(f"the folder cannot be used ({fault})", place=place) from fault
