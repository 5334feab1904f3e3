"""Clocks that jump by ten days, forth and back, under processes that compete for one workflow.

The clock of each process is told by a file, which it reads whenever it asks for the time: through the port of
the clock, and where the time is asked for without it. (A library that is loaded before libc to lie about the
time also lies to `clock_nanosleep`, and then nothing that sleeps works.)

A clock that is set forward ends the lease of somebody who is at work; one that is set back makes it last.
Whatever clocks say, the history has to be one that a single thread could have made, and the trail unbroken.
Without a look at the tokens it must go red.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from holdfast.adapters.system import SystemClock
from holdfast.bootstrap import open_store
from holdfast.config import Config
from tests.machine import contenders
from tests.machine.images import workshop
from tests.machine.outcome import Harness, Order, Outcome, main
from tests.machine.subjects import FILES
from tests.process.child import Report
from tests.process.running import ROOT

NAME, MODULE = "clock jumps", "tests.machine.clock_jumps"
WORKERS = 4
LEASE_SECONDS = 30.0
#: Days that a clock is off.
JUMPS = (10, -10, 10, -10, 0)
JUMPS_PER_ROUND = 20
#: How long they work between two jumps: nothing depends on it.
BETWEEN_SECONDS = 0.2
READY = b"ready"


class Worker:
    """A process whose clock is told by a file."""

    def __init__(self, folder: Path, url: str, name: str, *, is_fenced: bool) -> None:
        self._clock, self._said = folder / f"{name}.clock", folder / f"{name}.said"
        self.set_clock(0)
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", MODULE, "worker", str(self._clock), url, name, str(int(is_fenced))],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=said,
            )

    def set_clock(self, days: int) -> None:
        """Let the clock jump, in one step."""
        new = self._clock.with_suffix(".new")
        new.write_text(str(days))
        new.replace(self._clock)

    def wait_until_ready(self) -> None:
        """Return when it has begun, or ended."""
        while READY not in self._said.read_bytes() and self._process.poll() is None:
            time.sleep(BETWEEN_SECONDS)

    def end(self) -> tuple[int, list[str]]:
        """Let it finish; answer its status and what it said."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b".")
            self._process.stdin.flush()
        status = self._process.wait()
        self._process.stdin.close()
        lines = self._said.read_text().splitlines()
        return status, [line for line in lines if line != READY.decode()]


def jump_by(clock: Path) -> None:
    """Let this process ask a file how far its clock is off, whenever it asks for the time."""
    honest, in_seconds = SystemClock.now, time.time

    def days() -> int:
        return int(clock.read_text())

    setattr(SystemClock, "now", lambda self: honest(self) + timedelta(days=days()))  # noqa: B010
    setattr(time, "time", lambda: in_seconds() + 86400 * days())  # noqa: B010


def worker(clock: str, url: str, name: str, is_fenced: str) -> None:
    """What the process does."""
    jump_by(Path(clock))
    os.set_blocking(0, False)
    os.write(1, READY + b"\n")
    contenders.work(Report(1), 0, url, name, is_fenced == "1", LEASE_SECONDS)


def run(order: Order) -> Outcome:
    """Let clocks jump so many times; every few jumps another store."""
    outcome, rng = Outcome(NAME, order), random.Random(order.seed)
    while outcome.goes_on:
        with workshop() as folder:
            url = contenders.url_of(order.store, folder)
            open_store(Config(store=url)).close()
            lines, found = list[str](), list[str]()
            for status, said in _play(outcome, rng, folder, url):
                found += [f"a worker ended with {status}"] if status else []
                lines += said
            contenders.judge(outcome, url, lines, found)
    return outcome


def _play(outcome: Outcome, rng: random.Random, folder: Path, url: str) -> Iterator[tuple[int, list[str]]]:
    is_fenced = not outcome.order.lies
    workers = [Worker(folder, url, f"worker-{number}", is_fenced=is_fenced) for number in range(WORKERS)]
    for one in workers:
        one.wait_until_ready()
    for _ in range(JUMPS_PER_ROUND):
        jump = rng.choice(JUMPS)
        rng.choice(workers).set_clock(jump)
        outcome.cases += 1
        outcome.count(f"{jump:+} days")
        time.sleep(BETWEEN_SECONDS)
    yield from [one.end() for one in workers]


#: PostgreSQL's leases end by the clock of its server.
STORES = (FILES, "sqlite")
HARNESS = Harness(NAME, STORES, run, needs_root=False)

if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(*sys.argv[2:])
    else:
        sys.exit(main(HARNESS, cases=100))
