"""Processes that take sessions over, line by line as they are told.

`python -m tests.process.passing NAME URL` runs one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import TracebackType

from holdfast import bootstrap
from holdfast.application.service import CheckpointService
from holdfast.domain.errors import CheckpointConflictError
from tests.process.running import ROOT

# -- in the child ----------------------------------------------------------------------------------


def take_over(service: CheckpointService) -> None:
    """Resume each session that is named, as the session that is named with it."""
    for line in sys.stdin:
        old, new = line.split()
        try:
            say(f"won {service.sessions.resume_session(old, new).session_id}")
        except CheckpointConflictError:
            say("lost")


def pass_on(service: CheckpointService) -> None:
    """Work, hand off, take over from itself and so on, until somebody puts an end to it."""
    name = sys.stdin.readline().strip()
    for number in range(1_000_000):
        service.create_checkpoint("W", {"n": number}, session_id=name)
        say(f"working {name} {number}")
        service.sessions.hand_off(name, payload={"n": number})
        say(f"left {name} {number}")
        name = service.sessions.resume_session(name, f"{name.split('.')[0]}.{number}").session_id


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


LOOPS: dict[str, Callable[[CheckpointService], None]] = {"take_over": take_over, "pass_on": pass_on}


# -- in the test -----------------------------------------------------------------------------------


class Passer:
    """Such a process."""

    def __init__(self, name: str, url: str) -> None:
        command = [sys.executable, "-m", "tests.process.passing", name, url]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert self.hear() == "ready"

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.kill()

    def __enter__(self) -> Passer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


if __name__ == "__main__":
    with bootstrap.open(sys.argv[2], retain=False) as opened:
        say("ready")
        LOOPS[sys.argv[1]](opened)
