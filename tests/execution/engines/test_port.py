"""What an engine is."""

from __future__ import annotations

from holdfast.execution.engines.local import LocalEngine
from holdfast.execution.engines.port import Engine, WorkerLostError


def test_the_engine_of_this_process_is_one() -> None:
    engine: Engine = LocalEngine()
    assert not engine.is_remote
    engine.close()


def test_a_lost_worker_is_an_error_of_its_own() -> None:
    assert issubclass(WorkerLostError, Exception)
