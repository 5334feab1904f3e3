"""What an engine is whose workers are other processes."""

from __future__ import annotations

from holdfast.execution.engines.dask_engine import DaskEngine
from holdfast.execution.engines.processes import ProcessEngine
from holdfast.execution.engines.ray_engine import RayEngine
from holdfast.execution.engines.remote_port import LEASE_SECONDS, POLL_SECONDS, RemoteEngine


def test_all_engines_with_workers_are_remote_and_agree_on_how_they_are_watched() -> None:
    engines: tuple[RemoteEngine, ...] = (ProcessEngine(), RayEngine(), DaskEngine("tcp://127.0.0.1:1"))
    for engine in engines:
        assert engine.is_remote
        assert (engine.store, engine.lease_seconds, engine.poll_seconds) == (
            None,
            LEASE_SECONDS,
            POLL_SECONDS,
        )
        engine.close()
