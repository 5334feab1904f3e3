"""Work for the processor: agents in other processes of this machine."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection, wait
from typing import Any

from holdfast.domain.errors import ConfigError, DeclarationError, StoreClosedError
from holdfast.execution.engines.port import WorkerLostError
from holdfast.execution.engines.portable import portable
from holdfast.execution.engines.remote_port import LEASE_SECONDS, POLL_SECONDS

#: Begun anew, and not copied from a process whose threads and connections cannot be copied.
_SPAWNING = multiprocessing.get_context("spawn")


class ProcessEngine:
    """Runs agents in processes of this machine, each of which does one thing at a time.

    A process that dies takes nobody else's work with it, and another one is begun in its place.
    """

    is_remote = True

    def __init__(
        self,
        workers: int | None = None,
        *,
        store: str | None = None,
        lease_seconds: float = LEASE_SECONDS,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        """Begin no process yet: each is begun when there is work for it.

        Args:
            workers: how many processes at most; by default one for each processor.
            store: the URL by which they open the store of a run; by default as the run tells it, which is
                enough for files and SQLite.
            lease_seconds: how long one may be silent before another one goes on in its place.
            poll_seconds: how often a run looks what they do.
        """
        self.store = store
        self.lease_seconds = lease_seconds
        self.poll_seconds = poll_seconds
        self._count = workers if workers is not None else os.cpu_count() or 1
        if self._count < 1:
            raise ConfigError("there is one worker at least", place="ProcessEngine", hint="Give workers=1.")
        self._threads = ThreadPoolExecutor(self._count, thread_name_prefix="holdfast-process")
        self._mutex = threading.Lock()
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._is_closed = False

    def check(self, function: Callable[..., Any]) -> None:
        """Refuse a function that another process could not find by its name.

        Raises:
            DeclarationError: it is no function of a module.
        """
        name = getattr(function, "__qualname__", "")
        if not _is_found(function, name):
            raise DeclarationError(
                "other processes find a function by its name in its module, and this one is not there",
                place=name or repr(function),
                hint="Write it at the top level of a module: no lambda, and none within another function.",
            )

    def submit(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Start a function in a process that has nothing to do; cancelling ends the process."""
        self.check(function)
        job = _Job()
        future = asyncio.get_running_loop().run_in_executor(
            self._threads, self._run, job, function, arguments
        )
        future.add_done_callback(lambda done: job.cancel() if done.cancelled() else None)
        return future

    def close(self) -> None:
        """End all processes, those at work too."""
        with self._mutex:
            self._is_closed = True
            workers = [*self._idle, *self._busy]
            self._idle.clear()
        for worker in workers:
            worker.end()
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _run(self, job: _Job, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        worker = self._taken()
        try:
            if not job.begin(worker):
                return None
            return worker.call(function, arguments)
        finally:
            job.end()
            self._give_back(worker)

    def _taken(self) -> _Worker:
        with self._mutex:
            if self._is_closed:
                raise StoreClosedError("the engine was closed", hint="Make another one.")
            worker = self._idle.pop() if self._idle else _Worker()
            self._busy.add(worker)
            return worker

    def _give_back(self, worker: _Worker) -> None:
        with self._mutex:
            self._busy.discard(worker)
            if worker.is_alive and not self._is_closed:
                self._idle.append(worker)
                return
        worker.end()


def _is_found(function: Callable[..., Any], name: str) -> bool:
    """Tell whether a process that is begun anew finds a function under its name."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    if module is None or (module.__name__ == "__main__" and not hasattr(module, "__file__")):
        # What was typed in is nowhere else.
        return False
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is function


class _Job:
    """Something that may be cancelled before, while and after it is done."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._worker: _Worker | None = None
        self._is_cancelled = False

    def begin(self, worker: _Worker) -> bool:
        with self._mutex:
            self._worker = worker
            return not self._is_cancelled

    def end(self) -> None:
        with self._mutex:
            self._worker = None

    def cancel(self) -> None:
        with self._mutex:
            self._is_cancelled = True
            if self._worker is not None:
                self._worker.end()


class _Worker:
    """One process, and the wire to it."""

    def __init__(self) -> None:
        self._wire, theirs = _SPAWNING.Pipe()
        # A daemon: it ends with this process, also where nobody closes the engine.
        self._process = _SPAWNING.Process(target=_serve, args=(theirs,), name="holdfast-worker", daemon=True)
        self._process.start()
        theirs.close()
        self.is_alive = True

    def call(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        """Have a function called there.

        Raises:
            WorkerLostError: the process ended.
        """
        try:
            self._wire.send((function, arguments))
            wait([self._wire, self._process.sentinel])
            is_good, answer = self._wire.recv()
        except (EOFError, OSError) as fault:
            self.is_alive = False
            self._process.join()
            raise WorkerLostError(f"process {self._process.pid} ended ({self._process.exitcode})") from fault
        if is_good:
            return answer
        raise answer

    def end(self) -> None:
        """End the process at once."""
        self.is_alive = False
        self._process.kill()


def _serve(wire: Connection) -> None:
    """Call what is asked for, until whoever asks is gone."""
    # A person's Ctrl-C is for the run, which then ends what is here.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            asked = wire.recv()
        except (EOFError, OSError):
            return
        except Exception as fault:
            # The function, or something it is given, cannot be had here.
            wire.send((False, portable(fault)))
            continue
        answer = _called(*asked)
        try:
            wire.send(answer)
        except OSError:
            # Nobody waits any more; what was done is in the journal of the step.
            return
        except Exception as fault:
            wire.send((False, portable(fault)))


def _called(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[bool, Any]:
    try:
        return True, function(*arguments)
    except Exception as fault:
        return False, portable(fault)
