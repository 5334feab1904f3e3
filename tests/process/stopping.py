"""Stopping a process where it keeps nobody out: whoever wants the store would wait until it goes on."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

_LOCKS = Path("/proc/locks")
_PAUSE_SECONDS = 0.01


def stop(pid: int) -> None:
    """Stop a process between two changes of its store, in none of them."""
    os.kill(pid, signal.SIGSTOP)
    wait_until_stopped(pid)
    while _keeps_others_out(pid):
        os.kill(pid, signal.SIGCONT)
        time.sleep(_PAUSE_SECONDS)
        os.kill(pid, signal.SIGSTOP)
        wait_until_stopped(pid)


def wait_until_stopped(pid: int) -> None:
    """Wait for all threads of a process: a signal reaches them one after another."""
    while any(_state(task) != "T" for task in Path(f"/proc/{pid}/task").iterdir()):
        time.sleep(_PAUSE_SECONDS / 10)


def _state(task: Path) -> str:
    # Its name, which is in brackets, may be anything.
    return (task / "stat").read_text().rpartition(")")[2].split()[0]


def _keeps_others_out(pid: int) -> bool:
    """Tell whether a process keeps others out by a lock; those that it has on a server are not seen."""
    locks = (line.split() for line in _LOCKS.read_text().splitlines())
    return any(words[3] == "WRITE" and words[4] == str(pid) for words in locks if words[1] != "->")
