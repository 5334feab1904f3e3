"""DBOS: each state is what a step answers. As it comes, but silent: no console, no telemetry."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from benchmarks.compare.contender import NoneSuchError, Work, path_of
from benchmarks.compare.contenders.steps import Steps
from benchmarks.compare.states import State

PACKAGES = ("dbos",)
#: What DBOS calls: its functions are registered once in a process, whichever database is open.
_open: list[Dbos] = []


class Dbos(Steps):
    def __init__(self, url: str, writers: int) -> None:
        super().__init__()
        self._dbos, self._workflow, self._step = _registered()
        system = f"sqlite:///{path_of(url)}" if url.startswith("sqlite:") else url
        self._dbos.DBOS(config=_config(system))
        _open[:] = [self]
        self._is_told = threading.Event()
        # Whatever was under way is gone on with by this; its body is told afterwards.
        self._dbos.DBOS.launch()

    def within(self, workflow: str, body: Callable[[], Any]) -> None:
        self._bodies[workflow] = body
        with self._dbos.SetWorkflowID(workflow):
            self._workflow(workflow)

    def body_told(self, workflow: str) -> Callable[[], Any]:
        if workflow not in self._bodies:
            self._is_told.wait()
        return self._bodies[workflow]

    def call_step(self, workflow: str, step: int) -> Any:
        return self._step(workflow, step)

    def answers(self, workflow: str) -> list[Any]:
        return [step["output"] for step in self._dbos.DBOS.list_workflow_steps(workflow)]

    def restore(self, workflow: str) -> State | None:
        """Read the last step alone: its number is known to whoever counts them without their outputs."""
        count = len(self._dbos.DBOS.list_workflow_steps(workflow, load_output=False))
        if not count:
            return None
        (newest,) = self._dbos.DBOS.list_workflow_steps(workflow, offset=count - 1)
        state: State = newest["output"]
        return state

    def listed(self, workflow: str, limit: int) -> int:
        return len(self._dbos.DBOS.list_workflow_steps(workflow, limit=limit, load_output=False))

    def prune(self, workflow: str, keep: int) -> str:
        raise NoneSuchError("none: a workflow is deleted as a whole")

    def proceed(self, workflow: str, first: State, work: Work, steps: int, *, resume: bool) -> None:
        body = self.body_of(workflow, first, work, steps)
        if resume:
            self._bodies[workflow] = body
            self._is_told.set()
            threading.Event().wait()
        self.within(workflow, body)

    def close(self) -> None:
        self._dbos.DBOS.destroy()


@cache
def _registered() -> tuple[Any, Any, Any]:
    """Register what DBOS is to call, once; imported by name, as it is not where types are checked."""
    dbos = import_module("dbos")

    def work(workflow: str) -> None:
        _open[0].body_told(workflow)()

    def answered(workflow: str, step: int) -> Any:
        return _open[0].answer(workflow, step)

    return dbos, dbos.DBOS.workflow(name="work")(work), dbos.DBOS.step(name="step")(answered)


def _config(url: str) -> dict[str, Any]:
    return {
        "name": "compare",
        "system_database_url": url,
        "log_level": "ERROR",
        "enable_otlp": False,
        # Otherwise a hash of the code, and a workflow is only recovered by code with the same.
        "application_version": "1",
    }
