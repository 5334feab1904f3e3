"""A process that recovers a workflow: its handler waits to be told, and it may die at any step on the way.

`python -m tests.process.resumer URL CHECKPOINT STEPS` recovers once told to. With STEPS it kills itself
before the call of that number that would change the store; with -1 it lives.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from holdfast.application.app import App
from holdfast.application.execution_context import ExecutionContext
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import Commit, Lease
from holdfast.ports import Store
from holdfast.testing import FailingStore
from tests.process.running import ROOT

CHECKPOINT = "WF resumed@1"


def make_app(resume: Any) -> App:
    """Make an app with one handler."""
    app = App()
    app.handlers.register("resume", resume)
    return app


def open_service(store: Store, app: App) -> CheckpointService:
    """Open a service that writes nothing by itself."""
    config = Config(background=False, retain=False, session="s-resumer")
    return CheckpointService(build_kit(store, config, app=app))


# -- in the child ----------------------------------------------------------------------------------


class DyingStore(FailingStore):
    """A store whose process is killed before one of its changes."""

    def __init__(self, store: Store, steps: int) -> None:
        super().__init__(store)
        self.steps = steps

    def _step(self) -> None:
        if self.steps == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.steps -= 1

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        self._step()
        return super().commit(commits)

    def acquire(
        self, workflow_id: str, owner: str, ttl_seconds: float, audit: Sequence[AuditEntry] = ()
    ) -> Lease:
        self._step()
        return super().acquire(workflow_id, owner, ttl_seconds, audit)

    def release(self, lease: Lease, audit: Sequence[AuditEntry] = ()) -> None:
        self._step()
        super().release(lease, audit)


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def serve(url: str, name: str, steps: int) -> None:
    def resume(context: ExecutionContext) -> None:
        say("running")
        sys.stdin.readline()

    store = DyingStore(open_store(Config(store=url)), -1)
    service = open_service(store, make_app(resume))
    say("ready")
    sys.stdin.readline()
    store.steps = steps
    try:
        say(f"success {service._engine.resumption.recover_from_checkpoint(name).success}")
    except CheckpointError as error:
        say(type(error).__name__)
    store.steps = -1
    service.close()


# -- in the parent ---------------------------------------------------------------------------------


class Resumer:
    """The process, from outside."""

    def __init__(self, url: str, name: str = CHECKPOINT, steps: int = -1) -> None:
        command = [sys.executable, "-m", "tests.process.resumer", url, name, str(steps)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Resumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()

    def go_on(self) -> None:
        """Let it begin, or let its handler end."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """Read a line; empty once it is dead."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def kill(self) -> None:
        """Kill it, and wait until it is gone."""
        self._process.kill()
        self._process.wait()

    def end(self) -> int:
        self._process.communicate("\n\n")
        return self._process.returncode


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], int(sys.argv[3]))
