"""A forked process that reports through a pipe."""

from __future__ import annotations

import fcntl
import mmap
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


class Report:
    """The writing end of a pipe; a line is written whole or not at all."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def say(self, word: str, workflow_id: str, number: int, rest: str = "") -> None:
        os.write(self._handle, f"{word} {workflow_id} {number} {rest}".rstrip().encode() + b"\n")

    def stay_near(self) -> None:
        """Wait for who listens once a page of lines is unread, and not only after sixteen."""
        fcntl.fcntl(self._handle, fcntl.F_SETPIPE_SZ, mmap.PAGESIZE)


@dataclass(slots=True)
class Child:
    """A forked process that reports through a pipe and may be told to stop through another."""

    pid: int
    handle: int
    stop_handle: int
    buffer: bytes = b""
    lines: list[str] = field(default_factory=list)

    def read_line(self) -> str | None:
        """The next line of the report, or None at its end."""
        while b"\n" not in self.buffer:
            data = os.read(self.handle, 65536)
            if not data:
                return None
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        self.lines.append(line.decode())
        return self.lines[-1]

    def read_what_is_there(self) -> None:
        """Read every line that was reported until now."""
        while b"\n" in self.buffer or select.select([self.handle], [], [], 0)[0]:
            if self.read_line() is None:
                return

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to finish: it closes its store and leaves."""
        os.write(self.stop_handle, b".")

    def end(self) -> int:
        """Read the rest of the report and wait for the end; answers the exit status."""
        while self.read_line() is not None:
            pass
        os.close(self.handle)
        os.close(self.stop_handle)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def start(work: Callable[..., None], *arguments: Any) -> Child:
    """Fork a child that works, reports and ends.

    `work` is given the report, a descriptor that can be read once it shall stop, and the arguments.
    """
    reading, writing = os.pipe()
    stop_reading, stop_writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        os.close(stop_reading)
        return Child(pid, reading, stop_writing)
    os.close(reading)
    os.close(stop_writing)
    status = 1
    try:
        os.set_blocking(stop_reading, False)
        work(Report(writing), stop_reading, *arguments)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def must_stop(handle: int) -> bool:
    try:
        return bool(os.read(handle, 1))
    except BlockingIOError:
        return False
