"""Agents on a Dask cluster of this machine, with their state in PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest

from holdfast.domain.errors import AgentFailedError, ConfigError
from holdfast.execution.engines.dask_engine import DaskEngine
from holdfast.execution.engines.port import WorkerLostError
from tests.adapters.postgres import server
from tests.execution.engines import trials
from tests.execution.engines.team import TOPICS, happened, repeated
from tests.process.evidence import keep


@contextmanager
def cluster(workers: int) -> Iterator[Any]:
    """A cluster of this machine that nobody else can reach, and a client of it."""
    # Else one that is down, while it is asked whether an earlier one came back, is given up for good.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}):
        local = distributed.LocalCluster(
            processes=True,
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            silence_logs=True,
        )
        with local, distributed.Client(local, set_as_default=False) as client:
            yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with cluster(2) as client:
        yield client


@pytest.fixture
def url() -> str:
    return server.url(lock_seconds="30", reconnect_seconds="60")


@pytest.fixture
def engine(client: Any, url: str) -> DaskEngine:
    return DaskEngine(client, store=url, poll_seconds=0.05, lease_seconds=trials.LEASE_SECONDS)


def called(engine: DaskEngine, function: Any, *arguments: Any) -> Any:
    async def call() -> Any:
        return await engine.submit(function, *arguments)

    return asyncio.run(call())


def test_a_function_runs_in_another_process_also_one_without_a_name(engine: DaskEngine) -> None:
    here = os.getpid()
    engine.check(lambda: None)
    assert called(engine, lambda: os.getpid() != here)


def test_what_a_function_raises_arrives(engine: DaskEngine) -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        called(engine, int, "seven")


def test_a_run_on_the_cluster_has_the_outcome_of_one_here(
    engine: DaskEngine, url: str, tmp_path: Path
) -> None:
    result = trials.run(engine, url, tmp_path)
    assert trials.outcome(result) == trials.expected(tmp_path / "undisturbed")
    assert str(os.getpid()) not in [line[3] for line in happened(tmp_path, "research")]


def test_postgresql_has_to_be_named(client: Any, url: str, tmp_path: Path) -> None:
    with pytest.raises(AgentFailedError, match="how they open the store") as caught:
        trials.run(DaskEngine(client), url, tmp_path)
    assert isinstance(caught.value.__cause__, ConfigError)


def test_a_cluster_is_entered_by_its_address_and_left(client: Any) -> None:
    engine = DaskEngine(client.scheduler.address)
    assert called(engine, abs, -1) == 1
    engine.close()
    engine.close()


def test_a_client_for_coroutines_is_refused() -> None:
    class Client:
        asynchronous = True

    with pytest.raises(ConfigError, match="belongs to one loop"):
        DaskEngine(Client())


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"holdfast\[dask\]"):
        DaskEngine("tcp://127.0.0.1:1")


def test_a_task_that_is_cancelled_does_not_begin(engine: DaskEngine, tmp_path: Path) -> None:
    async def cancelled() -> Any:
        future = engine.submit(abs, -1)
        future.cancel()
        await asyncio.wait({future})
        return await engine.submit(abs, -2)

    assert asyncio.run(cancelled()) == 2


def test_a_worker_killed_past_its_milestone_is_followed_by_another(
    engine: DaskEngine, url: str, tmp_path: Path
) -> None:
    """Dask starts the task again by itself, as it does by default: the run is told, and goes on."""
    wanted = trials.expected(tmp_path / "undisturbed")
    result = trials.disturbed(engine, url, tmp_path, trials.kill)
    assert trials.violations(result, tmp_path, wanted) == []
    assert any("its worker was lost" in text for text in result.warnings)


@pytest.mark.campaign
def test_where_dask_allows_no_failure_a_killed_worker_is_a_lost_one(url: str, tmp_path: Path) -> None:
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), cluster(1) as client:
        engine = DaskEngine(client, store=url, poll_seconds=0.05)
        with pytest.raises(WorkerLostError, match="is gone"):
            called(engine, os._exit, 3)
        wanted = trials.expected(tmp_path / "undisturbed")
        assert trials.violations(trials.disturbed(engine, url, tmp_path, trials.kill), tmp_path, wanted) == []


def test_what_a_worker_finished_is_adopted_though_its_run_was_killed(
    client: Any, engine: DaskEngine, url: str, tmp_path: Path
) -> None:
    wanted = trials.expected(tmp_path / "undisturbed")
    trials.abandoned("dask", url, tmp_path, address=client.scheduler.address)
    assert trials.outcome(trials.run(engine, url, tmp_path)) == wanted
    assert len(happened(tmp_path, "research", TOPICS[1])) == 1
    assert repeated(tmp_path) == []


def test_killed_again_and_again_nothing_committed_is_repeated(
    client: Any, tmp_path: Path, campaign: bool
) -> None:
    kills = 40 if campaign else 2
    counts, wrong = trials.killed_often(
        lambda url: DaskEngine(client, store=url, poll_seconds=0.05), server.url, tmp_path, kills
    )
    keep("engines", "Dask: workers killed", counts, wrong)
    assert wrong == []
    assert counts["kills"] == kills
