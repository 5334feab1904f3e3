"""Microsoft Agent Framework's file storage, called as a workflow calls it after each superstep."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from importlib import import_module
from typing import Any

from benchmarks.compare.contender import Contender, path_of
from benchmarks.compare.states import Changed, State

PACKAGES = ("agent-framework-core",)


class AgentFramework(Contender):
    def __init__(self, url: str, writers: int) -> None:
        # Imported by name: it is not in the environment that checks types.
        self._framework: Any = import_module("agent_framework")
        self._storage = self._framework.FileCheckpointStorage(path_of(url))
        self._of_thread = threading.local()

    def save(self, workflow: str, step: int, state: State, changed: Changed) -> None:
        checkpoint = self._framework.WorkflowCheckpoint(
            workflow_name=workflow, graph_signature_hash="", state=state, iteration_count=step
        )
        self._run(self._storage.save(checkpoint))

    def restore(self, workflow: str) -> State | None:
        latest = self._run(self._storage.get_latest(workflow_name=workflow))
        return latest.state if latest else None

    def listed(self, workflow: str, limit: int) -> int:
        return len(self._run(self._storage.list_checkpoint_ids(workflow_name=workflow))[:limit])

    def prune(self, workflow: str, keep: int) -> str:
        """Delete by id, which is what there is; which are old the caller has to find out."""
        found = self._run(self._storage.list_checkpoints(workflow_name=workflow))
        for checkpoint in sorted(found, key=lambda one: one.timestamp)[:-keep]:
            self._run(self._storage.delete(checkpoint.checkpoint_id))
        return f"the last {keep}, deleted one by one by the caller"

    def leave_thread(self) -> None:
        self._runner.close()

    close = leave_thread

    @property
    def _runner(self) -> asyncio.Runner:
        """One event loop for each thread."""
        if not hasattr(self._of_thread, "runner"):
            self._of_thread.runner = asyncio.Runner()
        runner: asyncio.Runner = self._of_thread.runner
        return runner

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(coroutine)
