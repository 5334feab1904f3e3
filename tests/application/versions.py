"""A program in three versions, and stores of every kind that its states lie in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from holdfast.adapters.memory import MemoryStore
from holdfast.application.app import App
from holdfast.application.engine import Engine
from holdfast.application.service import CheckpointService
from holdfast.application.upgrading import Upgrading
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.testing import FixedClock
from tests.adapters.postgres import server
from tests.encrypted import OLD_KEY, StaysOpen, encrypted_store

KINDS = ("memory", "sealed", "file", "sqlite", "postgres")


def app_of(version: str) -> App:
    """Make the program: 1.1.0 calls `plan` a list of `steps`, 2.0.0 has these in an object by name."""
    app = App(schema_version=version)

    @app.migration("1.0.0", "1.1.0")
    def split(fields: dict[str, Any]) -> dict[str, Any]:
        context = fields["context"]
        context["steps"] = context.pop("plan").split(", ")
        return fields

    @app.migration("1.1.0", "2.0.0")
    def name(fields: dict[str, Any]) -> dict[str, Any]:
        context = fields["context"]
        steps = {step: {"done": False} for step in context["steps"]}
        return {**fields, "context": {**context, "steps": steps}}

    return app


class Home:
    """One store of a kind, opened as often as wanted, by programs of any version."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self._clock = FixedClock(step=timedelta(seconds=1))
        #: The store itself where it lives in memory.
        self.store: Any = None
        self._url = ""
        if kind == "memory":
            self.store = MemoryStore()
        elif kind == "sealed":
            self.store = encrypted_store()
        else:
            urls = {"file": f"file:{folder / 'store'}", "sqlite": f"sqlite:{folder / 'store.db'}"}
            self._url = urls.get(kind) or server.url()

    def open(self, app: App | str = "1.0.0", **settings: Any) -> CheckpointService:
        """Open it by a program, or by one of a version."""
        program = app_of(app) if isinstance(app, str) else app
        given: dict[str, Any] = {"background": False, "retain": False, "session": "s-1", **settings}
        if self.kind == "sealed":
            given["encryption_key"] = f"command:echo {OLD_KEY.hex()}"
        store: Any = StaysOpen(self.store) if self.store is not None else None
        if store is None:
            store = open_store(Config(store=self._url, **given))
        return CheckpointService(build_kit(store, Config(**given), clock=self._clock, app=program))


def upgrading(service: CheckpointService) -> Upgrading:
    """Build the room over an open service."""
    engine: Engine = service._engine
    return Upgrading(engine.kit, engine.trail, engine.writer, engine.reader, engine.wait)


@contextmanager
def kept(service: CheckpointService, workflow_id: str) -> Iterator[None]:
    """Check that not one stored byte of a workflow changes inside."""
    before = stored(service, workflow_id)
    yield
    assert stored(service, workflow_id) == before


def stored(service: CheckpointService, workflow_id: str, last: int | None = None) -> list[Any]:
    """Take everything that is stored of the checkpoints of a workflow up to one."""
    store = service._engine.kit.store
    service._engine.flush()
    end = last or store.head(workflow_id).sequence
    entries = [entry for entry in store.entries(workflow_id) if entry.sequence <= end]
    keyframes = [one for one in store.keyframes(workflow_id) if one.sequence <= end]
    frames = [store.keyframe(workflow_id, one.sequence) for one in keyframes]
    return [entries, list(store.records(workflow_id, 1, end)), keyframes, frames]
