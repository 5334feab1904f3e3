"""A pytest plugin that tries mutants: everything is imported and collected once, each mutant is a fork.

First every test runs once, and the functions that it enters are noted. A mutant is then shown only to the
tests that enter its function, the quickest first, until one of them fails.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.mutation.modules import OTHER_STORES
from tests.mutation.mutants import Mutant, put_into

#: Seconds are those of the processor, on a machine that may be busy.
#: A test that takes longer is left out: its time is better spent on other mutants.
SLOW_SECONDS = 6.0
#: The quickest tests that take so long together are shown a mutant; more would hardly ever notice more.
TESTS_SECONDS_MAX = 15.0
MEMORY_BYTES_MAX = 4 * 1024**3
#: And three times what the tests took when they were surveyed.
HANGING_SECONDS = 5
#: By the clock: for what waits for ever.
WAITING_SECONDS = 90.0
_SURVIVED, _KILLED, _BROKEN = 0, 10, 11


@dataclass(frozen=True, slots=True)
class Folders:
    """Where the package lies, where it is remembered what tests enter, and a file for notes.

    Attributes:
        subjects: the names of all functions that get faults: what was remembered holds for these only.
    """

    source: Path
    reach: Path
    notes: Path
    subjects: str


@dataclass(frozen=True, slots=True)
class Job:
    """One mutant to try, and where to tell how it went."""

    module: str
    source: str
    mutant: Mutant


@dataclass(slots=True)
class Reach:
    """What is known of one test: whether it may be used, how long it takes, what it enters."""

    seconds: float = 0.0
    is_green: bool = True
    functions: set[tuple[str, str]] = field(default_factory=set)


class Trying:
    """Replaces the loop over the tests by a loop over mutants."""

    def __init__(
        self, folders: Folders, jobs: list[Job], deadline: float, tell: Callable[[Job, str, str], None]
    ) -> None:
        self._source, self._reach, self._notes = folders.source, folders.reach, folders.notes
        self._subjects = folders.subjects
        self._jobs = jobs
        self._deadline = deadline
        self._tell = tell
        self._child: _Judge | None = None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._child is not None:
            self._child.hear(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        _choose_few_examples()
        items = [item for item in session.items if not any(name in item.nodeid for name in OTHER_STORES)]
        reach = self._survey(items)
        for job in self._jobs:
            if time.time() >= self._deadline:
                break
            self._tell(job, *self._try(job, _chosen(items, reach, job)))
        return True

    def _survey(self, items: list[pytest.Item]) -> dict[str, Reach]:
        """Hear from forks which functions each test enters, file by file; what is known is not asked."""
        for notes, members in self._unknown(items):
            with _forked() as pid:
                if not pid:
                    judge = self._child = _Surveyor(self._source)
                    judge.run(members)
                    notes.write_text(json.dumps(judge.notes()), encoding="utf-8")
                    os._exit(_SURVIVED)
                _wait(pid, 600.0)
        found = {}
        for notes in filter(Path.exists, {self._notes_of(item) for item in items}):
            for name, (seconds, is_green, functions) in json.loads(notes.read_text(encoding="utf-8")).items():
                found[name] = Reach(seconds, is_green, {(file, function) for file, function in functions})
        return found

    def _unknown(self, items: list[pytest.Item]) -> Iterator[tuple[Path, list[pytest.Item]]]:
        for notes, members in groupby(items, key=self._notes_of):
            if not notes.exists():
                yield notes, list(members)

    def _notes_of(self, item: pytest.Item) -> Path:
        """Name the file that remembers what a file of tests enters, for as long as both stay the same."""
        text = item.path.read_text(encoding="utf-8") + self._subjects
        return self._reach / f"{item.path.stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.json"

    def _try(self, job: Job, chosen: list[tuple[pytest.Item, float]]) -> tuple[str, str]:
        if not chosen:
            return "unreached", ""
        notes = self._notes
        notes.write_text("", encoding="utf-8")
        with _forked() as pid:
            if not pid:
                self._child = _Judge(notes)
                _limit_seconds(HANGING_SECONDS + 3 * sum(seconds for _, seconds in chosen))
                module = importlib.import_module(f"holdfast.{job.module.replace('/', '.')}")
                put_into(module, job.source, job.mutant)
                self._child.run([item for item, _ in chosen])
                os._exit(_SURVIVED)
            status = _wait(pid, WAITING_SECONDS)
        if status in (None, -signal.SIGXCPU, -signal.SIGKILL):
            return "timeout", ""
        return ("survived" if status == _SURVIVED else "killed"), notes.read_text(encoding="utf-8")


class _Judge:
    """Ends the process at the first test that fails."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes

    def hear(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._notes.write_text(report.nodeid, encoding="utf-8")
            os._exit(_KILLED)

    def run(self, items: list[pytest.Item]) -> None:
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.before(item)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def before(self, item: pytest.Item) -> None:
        """Nothing has to be noted."""


class _Surveyor(_Judge):
    """Notes which functions of ours each test enters, and how long it takes."""

    def __init__(self, source: Path) -> None:
        self._prefix = f"{source}/"
        self._reach: dict[str, Reach] = {}
        self._now = Reach()
        self._began = 0.0
        threading.setprofile(self._enter)
        sys.setprofile(self._enter)

    def before(self, item: pytest.Item) -> None:
        self._now = self._reach[item.nodeid] = Reach()
        self._began = time.process_time()

    def hear(self, report: pytest.TestReport) -> None:
        self._now.seconds = time.process_time() - self._began
        self._now.is_green &= not report.failed

    def notes(self) -> dict[str, Any]:
        sys.setprofile(None)
        return {
            name: (reach.seconds, reach.is_green, sorted(reach.functions))
            for name, reach in self._reach.items()
        }

    def _enter(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(self._prefix):
            file = code.co_filename.removeprefix(self._prefix).removesuffix(".py")
            self._now.functions.add((file, code.co_qualname.partition(".<locals>")[0]))


def _choose_few_examples() -> None:
    """Show each mutant the same few examples; imported late, for pytest wants to be first."""
    from hypothesis import settings

    settings.register_profile("mutation", max_examples=25, derandomize=True, deadline=None, database=None)
    settings.load_profile("mutation")


def _chosen(items: list[pytest.Item], reach: dict[str, Reach], job: Job) -> list[tuple[pytest.Item, float]]:
    place = (job.module, job.mutant.function)
    known = [(item, reach[item.nodeid]) for item in items if item.nodeid in reach]
    fitting = [
        (item, one.seconds)
        for item, one in known
        if one.is_green and one.seconds < SLOW_SECONDS and place in one.functions
    ]
    chosen: list[tuple[pytest.Item, float]] = []
    for item, seconds in sorted(fitting, key=lambda pair: pair[1]):
        if sum(known for _, known in chosen) + seconds > TESTS_SECONDS_MAX:
            break
        chosen.append((item, seconds))
    return chosen


@contextmanager
def _forked() -> Iterator[int]:
    """Give the child a group of its own, little memory and nowhere to talk; it never comes back."""
    pid = os.fork()
    if pid:
        yield pid
        return
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        yield 0
    finally:
        os._exit(_BROKEN)


def _limit_seconds(seconds: float) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))


def _wait(pid: int, seconds: float) -> int | None:
    """Wait for a child, and end whatever is left of its group; None after too long."""
    deadline = time.monotonic() + seconds
    answer = None
    while answer is None and time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        answer = os.waitstatus_to_exitcode(status) if done else None
        if answer is None:
            time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if answer is None:
        os.waitpid(pid, 0)
    return answer
