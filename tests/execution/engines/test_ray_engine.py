"""Agents on a Ray cluster of this machine, with their state in PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from holdfast.domain.errors import AgentFailedError, ConfigError
from holdfast.execution.engines.port import WorkerLostError
from holdfast.execution.engines.ray_engine import RayEngine
from tests.adapters.postgres import server
from tests.execution.engines import trials
from tests.execution.engines.team import TOPICS, happened, repeated, wait_for
from tests.process.evidence import keep

SHARED_BYTES = 80 * 1024 * 1024


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A small cluster of this machine that nobody else can reach; its address."""
    # Sockets are in there, whose names must be short.
    folder = tempfile.mkdtemp(prefix="hf-ray-")
    # Ray takes SIGTERM over and does not give it back.
    before = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("PYTHONPATH", str(trials.ROOT))
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=SHARED_BYTES,
            _node_ip_address="127.0.0.1",
            _temp_dir=folder,
        )
        yield ray.get_runtime_context().gcs_address
        ray.shutdown()
    signal.signal(signal.SIGTERM, before)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url() -> str:
    return server.url(lock_seconds="30", reconnect_seconds="60")


@pytest.fixture
def engine(cluster: str, url: str) -> RayEngine:
    return RayEngine(store=url, poll_seconds=0.05, lease_seconds=trials.LEASE_SECONDS)


def called(engine: RayEngine, function: Any, *arguments: Any) -> Any:
    async def call() -> Any:
        return await engine.submit(function, *arguments)

    return asyncio.run(call())


def test_a_function_runs_in_another_process_also_one_without_a_name(engine: RayEngine) -> None:
    here = os.getpid()
    engine.check(lambda: None)
    assert called(engine, lambda: os.getpid() != here)


def test_what_a_function_raises_arrives(engine: RayEngine) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        called(engine, int, "seven")


def test_a_worker_that_dies_is_a_lost_one_and_ray_does_not_try_again(
    engine: RayEngine, tmp_path: Path
) -> None:
    folder = str(tmp_path)
    with pytest.raises(WorkerLostError, match="WorkerCrashedError"):
        called(engine, trials.mark_and_die, folder)
    assert len(happened(tmp_path, "died")) == 1


def test_cancelling_ends_the_process_that_does_the_work(engine: RayEngine, tmp_path: Path) -> None:
    async def cancelled() -> int:
        future = engine.submit(trials.at_and_wait, str(tmp_path))
        pid = int(await asyncio.to_thread(wait_for, tmp_path, "at"))
        future.cancel()
        await asyncio.wait({future})
        await asyncio.to_thread(trials.wait_until_gone, pid)
        return await engine.submit(abs, -1)

    assert asyncio.run(cancelled()) == 1


def test_a_run_on_the_cluster_has_the_outcome_of_one_here(
    engine: RayEngine, url: str, tmp_path: Path
) -> None:
    result = trials.run(engine, url, tmp_path)
    assert trials.outcome(result) == trials.expected(tmp_path / "undisturbed")
    assert str(os.getpid()) not in [line[3] for line in happened(tmp_path, "research")]


def test_postgresql_has_to_be_named(cluster: str, url: str, tmp_path: Path) -> None:
    with pytest.raises(AgentFailedError, match="how they open the store") as caught:
        trials.run(RayEngine(), url, tmp_path)
    assert isinstance(caught.value.__cause__, ConfigError)


def test_a_connection_that_the_program_made_is_not_closed(engine: RayEngine) -> None:
    assert called(engine, abs, -1) == 1
    engine.close()
    assert ray.is_initialized()


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"holdfast\[ray\]"):
        RayEngine()


def test_a_worker_killed_past_its_milestone_is_followed_by_another(
    engine: RayEngine, url: str, tmp_path: Path
) -> None:
    wanted = trials.expected(tmp_path / "undisturbed")
    result = trials.disturbed(engine, url, tmp_path, trials.kill)
    assert trials.violations(result, tmp_path, wanted) == []
    assert any("its worker was lost" in text for text in result.warnings)


def test_a_worker_that_hangs_is_noticed_by_its_lease(cluster: str, tmp_path: Path) -> None:
    # Who hangs in the middle of a commit keeps the others out for half as long as they have patience.
    url = server.url(lock_seconds="10", reconnect_seconds="60")
    wanted = trials.expected(tmp_path / "undisturbed")
    engine = RayEngine(store=url, poll_seconds=0.05, lease_seconds=trials.LEASE_SECONDS)
    result = trials.disturbed(engine, url, tmp_path, lambda pid: trials.hang(pid, url))
    assert trials.violations(result, tmp_path, wanted) == []


def test_what_a_worker_finished_is_adopted_though_its_run_was_killed(
    cluster: str, engine: RayEngine, url: str, tmp_path: Path
) -> None:
    wanted = trials.expected(tmp_path / "undisturbed")
    trials.abandoned("ray", url, tmp_path, address=cluster)
    assert trials.outcome(trials.run(engine, url, tmp_path)) == wanted
    assert len(happened(tmp_path, "research", TOPICS[1])) == 1
    assert repeated(tmp_path) == []


def test_killed_again_and_again_nothing_committed_is_repeated(
    cluster: str, tmp_path: Path, campaign: bool
) -> None:
    kills = 40 if campaign else 2
    counts, wrong = trials.killed_often(
        lambda url: RayEngine(store=url, poll_seconds=0.05), server.url, tmp_path, kills
    )
    keep("engines", "Ray: workers killed", counts, wrong)
    assert wrong == []
    assert counts["kills"] == kills
