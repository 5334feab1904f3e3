"""One process that is killed in the midst of its steps, and one that goes on from there.

From the start of the new process to its first new step, everything that has to be imported, opened, read and
replayed is in the time. It ends itself before that step is saved, so that the same can be measured again.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from typing import Any

from benchmarks.compare.child import named
from benchmarks.compare.contender import Contender
from benchmarks.compare.states import State, first_state, next_state
from benchmarks.compare.workloads import WORKFLOW

SIZE = 2_000


def until_killed(contender: Contender, kill_at: int) -> None:
    def work(step: int, state: State) -> State:
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return next_state(state, step)

    contender.proceed(WORKFLOW, first_state(SIZE), work, kill_at + 1, resume=False)


def resumed(contender: Contender, kill_at: int, started_at: float, imported_at: float) -> None:
    opened_at = time.monotonic()

    def work(step: int, state: State) -> State:
        entered_at = time.monotonic()
        is_equal = step == kill_at and dict(state) == expected(kill_at)
        parts = {
            "importing_seconds": imported_at - started_at,
            "opening_seconds": opened_at - imported_at,
            "restoring_seconds": entered_at - opened_at,
        }
        _end({"seconds": entered_at - started_at, **parts, "step": step, "is_equal": is_equal})
        return state

    contender.proceed(WORKFLOW, first_state(SIZE), work, kill_at + 1, resume=True)


def expected(steps: int) -> State:
    state = first_state(SIZE)
    for step in range(steps):
        state = next_state(state, step)
    return state


def _end(answer: dict[str, Any]) -> None:
    """End at once, whatever threads there are."""
    os.write(_answers, json.dumps(answer).encode())
    os._exit(0)


if __name__ == "__main__":
    maker, url, kill_at, started_at = sys.argv[1:]
    _answers = os.dup(1)
    os.dup2(2, 1)
    make, _ = named(maker)
    imported_at = time.monotonic()
    if started_at == "kill":
        until_killed(make(url, 1), int(kill_at))
    else:
        resumed(make(url, 1), int(kill_at), float(started_at), imported_at)
