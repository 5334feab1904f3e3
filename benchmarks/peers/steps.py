"""The steps that every executor is given, and when each was entered. Needs the standard library alone."""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import signal
import statistics
import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

STEPS = 1_000
RESULT_CHARACTERS = 2_000
WORKFLOW_ID = "a-thousand-steps"


@dataclass(frozen=True, slots=True)
class Asked:
    """What one process is to do: all steps, all until it is killed, or the rest."""

    url: str
    journal: str
    started_at: float
    kill_at: int | None
    resume: bool


def asked() -> Asked:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("journal", help="a file that gets the number of each step that is entered")
    parser.add_argument("--started-at", type=float, default=0.0, help="by the monotonic clock")
    parser.add_argument("--kill-at", type=int)
    parser.add_argument("--resume", action="store_true")
    return Asked(**vars(parser.parse_args()))


class Steps:
    """Trivial work whose entries are told outside, so that a kill does not forget them."""

    def __init__(self, asked: Asked) -> None:
        source = random.Random(2_000)
        self._texts = [_text(source) for _ in range(STEPS)]
        self._kill_at = asked.kill_at
        self._started_at = asked.started_at
        self._journal = os.open(asked.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self._entered: list[float] = []
        self._used: list[float] = []
        self._began = 0.0

    def begin(self) -> None:
        """Start the clock: everything is imported and declared, nothing is opened."""
        self._began = time.monotonic()

    def since(self) -> float:
        return time.monotonic() - self._began

    def step(self, number: int) -> dict[str, Any]:
        """Do what takes no time, once its entry is told."""
        self._entered.append(self.since())
        self._used.append(time.process_time())
        os.write(self._journal, b"%d\n" % number)
        if number == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return {"step": number, "text": self._texts[number]}

    def report(self, *, end_seconds: float, **more: Any) -> None:
        """Print one line: between two entries lies all that an executor does for a step."""
        gaps = sorted(later - earlier for earlier, later in pairwise(self._entered))
        told = {
            "steps": len(self._entered),
            "p50_seconds": statistics.median(gaps),
            "p95_seconds": gaps[int(len(gaps) * 0.95)],
            "cpu_seconds": (self._used[-1] - self._used[0]) / len(gaps),
            "first_seconds": self._entered[0],
            "first_since_start_seconds": self._began + self._entered[0] - self._started_at,
            "end_seconds": end_seconds,
            **more,
        }
        print(json.dumps(told), flush=True)


def _text(source: random.Random) -> str:
    """Letters that no compressor shrinks much."""
    return base64.b64encode(source.randbytes(RESULT_CHARACTERS)).decode()[:RESULT_CHARACTERS]
