"""What everybody writes first: JSON into a new file, fsync, rename over the old one, fsync of the folder."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Lock

from benchmarks.compare.contender import Contender, NoneSuchError, path_of
from benchmarks.compare.states import Changed, State
from benchmarks.raw import RawReplace

PACKAGES: tuple[str, ...] = ()


class Plain(Contender):
    def __init__(self, url: str, writers: int) -> None:
        self._folder = Path(path_of(url))
        self._replaces: dict[str, RawReplace] = {}
        self._lock = Lock()

    def save(self, workflow: str, step: int, state: State, changed: Changed) -> None:
        self._replace(workflow)(json.dumps(state).encode())

    def restore(self, workflow: str) -> State | None:
        path = self._folder / workflow / "checkpoint.json"
        state: State | None = json.loads(path.read_bytes()) if path.exists() else None
        return state

    def prune(self, workflow: str, keep: int) -> str:
        raise NoneSuchError("none needed: it has no history")

    def close(self) -> None:
        for replace in self._replaces.values():
            replace.close()

    def _replace(self, workflow: str) -> RawReplace:
        with self._lock:
            if workflow not in self._replaces:
                folder = self._folder / workflow
                folder.mkdir(parents=True, exist_ok=True)
                self._replaces[workflow] = RawReplace(folder)
            return self._replaces[workflow]
