"""Calls of a process to the kernel, counted, and one of them made to fail or to be its last: by strace."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.process.child import Child, Report, start

#: Whatever changes files, hurries that, or opens them. A question mark: not every machine knows all of them.
CALLS = (
    *("fsync", "fdatasync", "write", "pwrite64", "pwritev", "openat", "unlink", "unlinkat"),
    *("rename", "renameat", "renameat2", "ftruncate", "fallocate", "mkdir", "mkdirat", "sync_file_range"),
)
#: Whatever makes durable what was written, or hurries it to the device.
_SYNCS = {"fsync", "fdatasync", "sync_file_range"}
_GROWS = {"write", "pwrite64", "pwritev", "openat", "ftruncate", "fallocate", "mkdir", "mkdirat", "rename"}
_LINE = re.compile(r"^\d+\s+(?P<call>\w+)\((?P<rest>.*)$")
_WAIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to the n-th call of a kind."""

    call: str
    number: int
    #: EIO, ENOSPC, or KILL: the process dies before the call is carried out.
    what: str

    def __str__(self) -> str:
        return f"{self.what} at {self.call} {self.number}"

    @property
    def option(self) -> str:
        how = "signal=KILL" if self.what == "KILL" else f"error={self.what}"
        return f"inject={self.call}:{how}:when={self.number}"


@dataclass(frozen=True, slots=True)
class Traced:
    """What came of a process that was watched."""

    status: int
    lines: list[str]
    log: list[str]
    #: What it wrote to standard error.
    said: str

    def calls_below(self, folder: str) -> list[tuple[str, int]]:
        """Number the calls of each kind, and give those that concern a folder."""
        seen, found = Counter[str](), list[tuple[str, int]]()
        for line in self.log:
            match = _LINE.match(line)
            if match is None or match["call"] not in CALLS:
                continue
            seen[match["call"]] += 1
            if folder in match["rest"]:
                found.append((match["call"], seen[match["call"]]))
        return found

    def was_hit(self, fault: Fault, folder: str) -> bool:
        """Tell whether the fault met a call on the folder: else this run was not like the counted one."""
        if fault.what == "KILL":
            return self.status == -signal.SIGKILL
        return any("(INJECTED)" in line and folder in line for line in self.log)


def faults_for(calls: list[tuple[str, int]]) -> list[Fault]:
    """Give every fault of every call."""
    found = []
    for call, number in calls:
        found += [Fault(call, number, "EIO"), Fault(call, number, "KILL")]
        if call in _GROWS or call in _SYNCS:
            found.append(Fault(call, number, "ENOSPC"))
    return found


def traced(log: Path, fault: Fault | None, work: Callable[..., None], *arguments: Any) -> Traced:
    """Run work in a process of its own under strace; counting begins with the work."""
    errors = log.with_suffix(".err")
    child = start(_when_watched, str(errors), work, *arguments)
    os.waitpid(child.pid, os.WUNTRACED)
    names = ",".join(f"?{call}" for call in CALLS)
    options = ["-e", fault.option] if fault else []
    command = ["strace", "-f", "-y", "-s", "0", "-o", str(log), "-e", f"trace={names}", *options]
    tracer = subprocess.Popen([*command, "-p", str(child.pid)], stderr=subprocess.DEVNULL)
    _wait_until_watched(child, tracer)
    os.kill(child.pid, signal.SIGCONT)
    status = child.end()
    tracer.wait()
    text = log.read_text(errors="replace").splitlines()
    return Traced(status, child.lines, text, errors.read_text(errors="replace"))


def _when_watched(report: Report, stop: int, errors: str, work: Callable[..., None], *arguments: Any) -> None:
    os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.kill(os.getpid(), signal.SIGSTOP)
    work(report, *arguments)


def _wait_until_watched(child: Child, tracer: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + _WAIT_SECONDS
    while "TracerPid:\t0\n" in Path(f"/proc/{child.pid}/status").read_text():
        if tracer.poll() is not None or time.monotonic() > ends:
            child.kill()
            raise RuntimeError("strace does not watch the process: is it allowed to?")
        time.sleep(0.002)
