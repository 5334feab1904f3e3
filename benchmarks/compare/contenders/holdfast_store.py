"""Holdfast alone: a checkpoint of the state after each step."""

from __future__ import annotations

import warnings

import holdfast
from benchmarks.compare.contender import Contender
from benchmarks.compare.states import Changed, State
from holdfast.domain.errors import StateSizeWarning

PACKAGES = ("apsw", "psycopg")


class HoldfastStore(Contender):
    def __init__(self, url: str, writers: int) -> None:
        warnings.simplefilter("ignore", StateSizeWarning)
        # Nothing is removed in the background, so that growth is seen; pruning is asked for.
        self._service = holdfast.open(url, retain=False)

    def save(self, workflow: str, step: int, state: State, changed: Changed) -> None:
        self._service.create_checkpoint(workflow, state)

    def restore(self, workflow: str) -> State | None:
        state = self._service.load_latest(workflow)
        return state.context if state else None

    def listed(self, workflow: str, limit: int) -> int:
        return len(self._service.list_checkpoints(workflow, limit))

    def differences(self, workflow: str) -> int:
        return len(self._service.diff_checkpoints(f"{workflow}@latest~1", f"{workflow}@latest"))

    def prune(self, workflow: str, keep: int) -> str:
        self._service.prune_checkpoints(workflow, retain_count=keep, retain_days=0)
        return f"the last {keep}"

    def close(self) -> None:
        self._service.close()
