"""Holdfast as an executor: a durable function, and each state is what a step of it answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import holdfast
from benchmarks.compare.contender import NoneSuchError, Work
from benchmarks.compare.contenders.steps import Steps
from benchmarks.compare.states import State
from holdfast.domain.errors import StateSizeWarning

PACKAGES = ("apsw", "psycopg")


class HoldfastSteps(Steps):
    def __init__(self, url: str, writers: int) -> None:
        super().__init__()
        warnings.simplefilter("ignore", StateSizeWarning)
        self._service = holdfast.open(url, retain=False)
        self._step = holdfast.step(self.answer)
        self._workflow = holdfast.durable(self._service, id="{workflow}")(self.call_body)

    def within(self, workflow: str, body: Callable[[], Any]) -> None:
        self._bodies[workflow] = body
        self._workflow(workflow)

    def call_body(self, workflow: str) -> None:
        self._bodies[workflow]()

    def call_step(self, workflow: str, step: int) -> Any:
        return self._step(workflow, step)

    def answers(self, workflow: str) -> list[Any]:
        state = self._service.load_latest(workflow)
        return [task["result"] for task in state.tasks] if state else []

    def listed(self, workflow: str, limit: int) -> int:
        return len(self.answers(workflow)[-limit:])

    def prune(self, workflow: str, keep: int) -> str:
        raise NoneSuchError("none: the steps of a run are kept")

    def proceed(self, workflow: str, first: State, work: Work, steps: int, *, resume: bool) -> None:
        self.within(workflow, self.body_of(workflow, first, work, steps))

    def close(self) -> None:
        self._service.close()
