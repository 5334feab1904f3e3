"""Runs of programs that are killed with `kill -9` right after a commit, as forks of one process.

To import a framework takes seconds, and a run far less. So a program runs once as it stands, in a new
interpreter. Another one, which is no fork of the tests and their threads, imports what the first had imported
in the end, and forks for each run after that. `python -m tests.integrations.forks` is that process: the first
line it reads names modules, each further one is a run and is answered by a line.
"""

from __future__ import annotations

import gc
import importlib
import json
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import IO, Any

from tests.integrations.pages import ROOT, Run, run_sample

KILLED = -signal.SIGKILL
#: PostgreSQL's needs a package that not every environment has.
STORES = ("filesystem.store:FilesystemStore", "sqlite.store:SqliteStore", "postgres.store:PostgresStore")
_TOLD = "\nimport json, os, sys\nprint(json.dumps([list(sys.modules), dict(os.environ)]))\n"


@dataclass(frozen=True, slots=True)
class Kill:
    """A program that was killed after so many commits, and run again to its end in the same folder."""

    after: int
    folder: Path
    first: Run
    second: Run


class Forks:
    """The process that has imported everything, seen from outside."""

    def __init__(self, process: subprocess.Popen[str], cold: Run) -> None:
        self._process = process
        #: The run as it stands, in an interpreter that had imported nothing.
        self.cold = cold

    def run(self, code: str, folder: Path, kill_after: int = 0) -> Run:
        """Run a program in a fork, in a folder, which is made where it is missing.

        Args:
            code: the program.
            folder: where it runs; what it keeps stays there.
            kill_after: so many commits are durable when the process is killed, before anybody is told of the
                last one; 0: it is not killed.
        """
        return self._run(code, folder, kill_after)[0]

    def kills(self, code: str | Callable[[Path], str], folder: Path, *, every: bool) -> Iterator[Kill]:
        """Kill a program and let it go on, each time in a folder of its own.

        Args:
            code: the program, or what makes it for a folder where it keeps something elsewhere.
            folder: where the folders are made.
            every: after each commit of an undisturbed run; else after the first, one between and the last.
        """
        made = code if callable(code) else lambda place: code
        whole, commits = self._run(made(folder / "whole"), folder / "whole", 0)
        assert whole.code == 0, whole.problem
        for after in range(1, commits + 1) if every else sorted({1, commits // 2, commits}):
            place = folder / str(after)
            program = made(place)
            first = self.run(program, place, after)
            assert first.code == KILLED, f"not killed after {after} of {commits} commits: {first.problem}"
            second = self.run(program, place)
            assert second.code == 0, f"killed after {after} commits: {second.problem}"
            yield Kill(after, place, first, second)

    def _run(self, code: str, folder: Path, kill_after: int) -> tuple[Run, int]:
        """Run a program; answer how often it committed too."""
        folder.mkdir(exist_ok=True)
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([code, str(folder), kill_after]), file=self._process.stdin, flush=True)
        status, lines, problem, commits = json.loads(self._process.stdout.readline())
        return Run(status, lines, problem), commits


@contextmanager
def forks(code: str) -> Iterator[Forks]:
    """Run a program as it stands, start the process that imports what it did, and end that at last."""
    with tempfile.TemporaryDirectory() as folder:
        cold = run_sample(code + _TOLD, Path(folder))
    assert cold.code == 0, cold.problem
    modules, environment = json.loads(cold.lines.pop())
    command, pipe = [sys.executable, "-m", "tests.integrations.forks"], subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        print(json.dumps(modules), file=process.stdin, flush=True)
        yield Forks(process, cold)
        process.stdin.close()


def main() -> None:
    """Import what is asked for, and run until nothing more is asked."""
    for module in json.loads(sys.stdin.readline()):
        # Some are there only in the midst of another's import.
        with suppress(Exception):
            importlib.import_module(module)
    stores = list(_stores())
    # What stays is not looked at again in each fork.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        print(json.dumps(_forked(stores, *json.loads(line))), flush=True)


def _stores() -> Iterator[Any]:
    for name in STORES:
        module, _, kind = name.partition(":")
        with suppress(ImportError):
            yield getattr(importlib.import_module(f"holdfast.adapters.{module}"), kind)


def _forked(stores: list[Any], code: str, folder: str, kill_after: int) -> tuple[int, list[str], str, int]:
    """Run a program in a fork; answer how that ended, what it printed, and how many commits it made."""
    # Shared with the fork, and there after its death.
    commits = mmap.mmap(-1, 8)
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as problem:
        child = os.fork()
        if child == 0:
            for store in stores:
                store.commit = _counted(store.commit, commits, kill_after)
            _become(code, Path(folder), printed, problem)
        _, status = os.waitpid(child, 0)
        printed.seek(0)
        problem.seek(0)
        made = int.from_bytes(commits[:], "big")
        return os.waitstatus_to_exitcode(status), printed.read().splitlines(), problem.read(), made


def _counted(commit: Callable[..., Any], commits: mmap.mmap, kill_after: int) -> Callable[..., Any]:
    """Wrap a store's commit so that the process dies when enough were made durable."""

    def commit_and_count(self: Any, batch: Any) -> Any:
        outcomes = commit(self, batch)
        made = int.from_bytes(commits[:], "big") + sum(outcome is None for outcome in outcomes)
        commits[:] = made.to_bytes(8, "big")
        if kill_after and made >= kill_after:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcomes

    return commit_and_count


def _become(code: str, folder: Path, printed: IO[str], problem: IO[str]) -> None:
    """Be the program, to the end of this process."""
    status = 1
    try:
        for descriptor, file in enumerate(
            (os.open(os.devnull, os.O_RDONLY), printed.fileno(), problem.fileno())
        ):
            os.dup2(file, descriptor)
        sys.stdout = os.fdopen(1, "w", buffering=1)
        os.chdir(folder)
        # Where classes look for the names in their annotations, and where frameworks look for their source.
        source, program = folder / "sample.py", ModuleType("__main__")
        source.write_text(code, encoding="utf-8")
        program.__file__, sys.argv, sys.modules["__main__"] = str(source), [str(source)], program
        exec(compile(code, str(source), "exec", dont_inherit=True), program.__dict__)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Nothing of the process that was forked is to be ended a second time.
        os._exit(status)


if __name__ == "__main__":
    main()
