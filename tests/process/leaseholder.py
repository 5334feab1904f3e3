"""A worker that holds a lease in a process of its own, and does what it is told line by line.

`python -m tests.process.leaseholder URL fenced` reads commands and answers each with a line.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType

from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain.errors import CheckpointError
from holdfast.domain.record import NO_WORKFLOW, Commit
from holdfast.ports import Store
from holdfast.testing import FailingStore
from tests.process.running import ROOT
from tests.process.stopping import stop

WORKFLOW = "WF leased"


# -- in the child ----------------------------------------------------------------------------------


class WorkersStore(FailingStore):
    """A store whose process may be stopped between what a commit says and its writing."""

    def __init__(self, store: Store, *, is_fenced: bool) -> None:
        super().__init__(store)
        self.stops_before_commit = False
        self._is_fenced = is_fenced

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        if self.stops_before_commit:
            self.stops_before_commit = False
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().commit(
            commits
            if self._is_fenced
            else [self._forged(commit) if commit.workflow_id else commit for commit in commits]
        )

    def _forged(self, commit: Commit) -> Commit:
        """Show whatever token passes: as if nobody looked at it. For negative controls."""
        lease = self.store.lease(commit.workflow_id) if commit.workflow_id != NO_WORKFLOW else None
        return replace(commit, token=lease.token if lease else 0)


def serve(url: str, *, is_fenced: bool) -> None:
    config = Config(store=url)
    store = WorkersStore(open_store(config), is_fenced=is_fenced)
    with CheckpointService(build_kit(store, config)) as service:
        for line in sys.stdin:
            try:
                answer = _done(service, store, *line.split())
            except CheckpointError as error:
                answer = type(error).__name__
            sys.stdout.write(f"{answer}\n")
            sys.stdout.flush()


def _done(service: CheckpointService, store: WorkersStore, command: str, *rest: str) -> str:
    if command == "acquire":
        return str(service.acquire_lease(WORKFLOW, rest[0], ttl_seconds=float(rest[1])).token)
    if command == "renew":
        lease = service.lease_of(WORKFLOW)
        assert lease is not None
        return str(service.renew_lease(replace(lease, token=int(rest[0]))).token)
    if command == "append":
        return f"event {service.append_event(WORKFLOW, 'CHILD', {'n': rest[0]}).seq}"
    store.stops_before_commit = command == "stop-and-commit"
    state = {"by": "child", "n": rest[0], "pad": "c" * 100_000}
    return str(service.create_checkpoint(WORKFLOW, state))


# -- in the parent ---------------------------------------------------------------------------------


class Leaseholder:
    """The process, from outside."""

    def __init__(self, url: str, *, is_fenced: bool = True) -> None:
        mode = "fenced" if is_fenced else "unfenced"
        command = [sys.executable, "-m", "tests.process.leaseholder", url, mode]
        self._process = subprocess.Popen(
            command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Leaseholder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            # SIGKILL reaches a stopped process too.
            self._process.kill()
        self._process.communicate()

    def tell(self, command: str) -> None:
        """Give a command; a process that is stopped finds it when it goes on."""
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, command: str) -> str:
        self.tell(command)
        return self.answer()

    def stop(self) -> None:
        stop(self._process.pid)
        self.wait_until_stopped()

    def wait_until_stopped(self) -> None:
        _, status = os.waitpid(self._process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status

    def go_on(self) -> None:
        os.kill(self._process.pid, signal.SIGCONT)


if __name__ == "__main__":
    serve(sys.argv[1], is_fenced=sys.argv[2] == "fenced")
