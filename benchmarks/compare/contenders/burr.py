"""Burr's SQLite persister, called as an application of Burr's calls it after each action."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

from benchmarks.compare.contender import Contender, path_of
from benchmarks.compare.states import Changed, State

PACKAGES = ("apache-burr",)
LOCKED_SECONDS = 60


class Burr(Contender):
    def __init__(self, url: str, writers: int) -> None:
        # Imported by name: it is not in the environment that checks types.
        self._persistence: Any = import_module("burr.core.persistence")
        self._state: Any = import_module("burr.core").State
        self._path = path_of(url)
        self._of_thread = threading.local()
        self._persister.initialize()

    @property
    def _persister(self) -> Any:
        """One connection for each thread, as sqlite3 wants it; whoever finds the file locked waits."""
        if not hasattr(self._of_thread, "persister"):
            self._of_thread.persister = self._persistence.SQLitePersister(
                self._path, connect_kwargs={"timeout": LOCKED_SECONDS}
            )
        return self._of_thread.persister

    def save(self, workflow: str, step: int, state: State, changed: Changed) -> None:
        self._persister.save("", workflow, step, "work", self._state(state), "completed")

    def restore(self, workflow: str) -> State | None:
        loaded = self._persister.load("", workflow)
        state: State | None = dict(loaded["state"].get_all()) if loaded else None
        return state

    def leave_thread(self) -> None:
        self._persister.cleanup()

    close = leave_thread
