"""Agents in other processes of this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import holdfast
from holdfast.domain.errors import ConfigError, DeclarationError, StoreClosedError
from holdfast.execution.engines import processes
from holdfast.execution.engines.port import WorkerLostError
from holdfast.execution.engines.processes import ProcessEngine
from holdfast.execution.remote import following
from tests.execution.engines import trials
from tests.execution.engines.elsewhere import one_agent, store_in
from tests.execution.engines.odd_errors import OddError, answer_oddly, fail_oddly
from tests.execution.engines.team import TOPICS, buy, happened, leave, repeated, wait_for
from tests.process.evidence import keep


@pytest.fixture
def engine() -> Iterator[ProcessEngine]:
    engine = ProcessEngine(2, poll_seconds=0.05, lease_seconds=trials.LEASE_SECONDS)
    yield engine
    engine.close()


def called(engine: ProcessEngine, function: Any, *arguments: Any) -> Any:
    async def call() -> Any:
        return await engine.submit(function, *arguments)

    return asyncio.run(call())


def end_yourself(status: int) -> None:
    os._exit(status)


def test_a_function_runs_in_another_process(engine: ProcessEngine) -> None:
    assert called(engine, os.getpid) != os.getpid()


def test_what_a_function_raises_arrives_with_the_place_where_it_was_raised(engine: ProcessEngine) -> None:
    with pytest.raises(ValueError, match="invalid literal") as caught:
        called(engine, int, "seven")
    assert "On a worker" in caught.value.__notes__[0]


def test_an_error_that_cannot_travel_is_told_and_ends_nobody(engine: ProcessEngine) -> None:
    with pytest.raises(Exception, match="OddError: 7 is odd"):
        called(engine, fail_oddly)
    with pytest.raises(Exception, match="pickle"):
        called(engine, answer_oddly)
    assert called(engine, abs, -1) == 1
    assert OddError(7, "").args == ("7 is odd",)


def test_a_process_that_dies_is_a_lost_worker_and_another_takes_its_place(engine: ProcessEngine) -> None:
    with pytest.raises(WorkerLostError, match=r"ended \(3\)"):
        called(engine, end_yourself, 3)
    assert called(engine, abs, -1) == 1


def test_a_process_that_dies_takes_nobody_elses_work_with_it(engine: ProcessEngine, tmp_path: Path) -> None:
    async def both() -> list[Any]:
        slow = engine.submit(wait_for, str(tmp_path), "go")
        lost = await asyncio.gather(engine.submit(end_yourself, 1), return_exceptions=True)
        leave(tmp_path, "go", "well")
        return [await slow, *lost]

    answer, fault = asyncio.run(both())
    assert answer == "well" and isinstance(fault, WorkerLostError)


def test_cancelling_ends_the_process_that_does_the_work(engine: ProcessEngine, tmp_path: Path) -> None:
    async def cancelled() -> int:
        future = engine.submit(trials.at_and_wait, str(tmp_path))
        pid = int(await asyncio.to_thread(wait_for, tmp_path, "at"))
        future.cancel()
        await asyncio.wait({future})
        await asyncio.to_thread(trials.wait_until_gone, pid)
        return await engine.submit(abs, -1)

    assert asyncio.run(cancelled()) == 1


@pytest.mark.parametrize("function", [lambda: 1, pytest.param(asyncio.Event().wait, id="method"), 7])
def test_a_function_without_a_name_in_a_module_is_refused(engine: ProcessEngine, function: Any) -> None:
    with pytest.raises(DeclarationError, match="find a function by its name"):
        engine.check(function)


def test_a_function_that_was_typed_in_is_refused(
    engine: ProcessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = ModuleType("__main__")
    exec("def typed(): pass", typed.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", typed)
    with pytest.raises(DeclarationError, match="find a function by its name"):
        engine.check(typed.typed)


def test_there_is_one_worker_at_least() -> None:
    with pytest.raises(ConfigError, match="one worker at least"):
        ProcessEngine(0)


def test_a_closed_engine_says_so(engine: ProcessEngine) -> None:
    assert called(engine, abs, -1) == 1
    engine.close()
    with pytest.raises((StoreClosedError, RuntimeError)):
        called(engine, abs, -1)


@pytest.mark.sweep
@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_a_worker_killed_past_its_milestone_is_followed_by_another(
    engine: ProcessEngine, tmp_path: Path, scheme: str
) -> None:
    wanted = trials.expected(tmp_path / "undisturbed")
    url = f"{scheme}:{tmp_path}/store"
    assert trials.violations(trials.disturbed(engine, url, tmp_path, trials.kill), tmp_path, wanted) == []


@pytest.mark.sweep
def test_what_a_worker_finished_is_adopted_though_its_run_was_killed(
    engine: ProcessEngine, tmp_path: Path
) -> None:
    wanted = trials.expected(tmp_path / "undisturbed")
    trials.abandoned("processes", store_in(tmp_path), tmp_path)
    result = trials.run(engine, store_in(tmp_path), tmp_path)
    assert trials.outcome(result) == wanted
    assert len(happened(tmp_path, "research", TOPICS[1])) == 1
    assert repeated(tmp_path) == []


@pytest.mark.sweep
def test_a_worker_that_outlives_its_run_is_waited_for_by_the_next(
    engine: ProcessEngine, tmp_path: Path
) -> None:
    wanted = trials.expected(tmp_path / "undisturbed")
    runner = trials.Runner("processes", store_in(tmp_path), tmp_path)
    wait_for(tmp_path, "at")
    runner.kill()

    async def resumed() -> Any:
        running = asyncio.ensure_future(trials.begin(engine, store_in(tmp_path), tmp_path))
        await asyncio.to_thread(trials.wait_for_start, store_in(tmp_path))
        leave(tmp_path, "go")
        return await running

    assert trials.outcome(asyncio.run(resumed())) == wanted
    assert len(happened(tmp_path, "research", TOPICS[1])) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("has_ledger", [True, False])
def test_only_the_ledger_keeps_an_effect_from_happening_again(
    engine: ProcessEngine, tmp_path: Path, has_ledger: bool
) -> None:
    """Without it, the negative control: the harness sees that it happens twice."""
    inputs = {"folder": str(tmp_path), "has_ledger": has_ledger}

    async def killed() -> Any:
        running = asyncio.ensure_future(one_agent(buy, engine).run(store_in(tmp_path), "WF-1", inputs))
        trials.kill(int(await asyncio.to_thread(wait_for, tmp_path, "at")))
        return await running

    assert asyncio.run(killed()).value == "bought"
    found = repeated(tmp_path)
    assert len(happened(tmp_path, "effect")) == (1 if has_ledger else 2)
    if not has_ledger:
        keep("engines", "control: effects without the ledger", {"found": len(found)}, [])


def hung(engine: ProcessEngine, folder: Path) -> Any:
    url = store_in(folder)
    return trials.disturbed(engine, url, folder, lambda pid: trials.hang(pid, url))


@pytest.mark.sweep
def test_a_worker_that_hangs_is_noticed_by_its_lease(tmp_path: Path) -> None:
    wanted = trials.expected(tmp_path / "undisturbed")
    engine = ProcessEngine(2, poll_seconds=0.05, lease_seconds=trials.LEASE_SECONDS)
    assert trials.violations(hung(engine, tmp_path), tmp_path, wanted) == []
    engine.close()


@pytest.mark.sweep
def test_a_worker_that_hung_and_wakes_up_again_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on another machine, nobody can end it: it goes on where it was, and is fenced off."""
    wanted = trials.expected(tmp_path / "undisturbed")
    monkeypatch.setattr(processes._Job, "cancel", lambda job: None)
    engine = ProcessEngine(3, poll_seconds=0.05, lease_seconds=trials.LEASE_SECONDS)
    stopped = list[int]()

    def hang(pid: int) -> None:
        trials.hang(pid, store_in(tmp_path))
        stopped.append(pid)

    result = trials.disturbed(engine, store_in(tmp_path), tmp_path, hang)
    assert trials.violations(result, tmp_path, wanted) == []
    leave(tmp_path, "go")
    os.kill(stopped[0], signal.SIGCONT)
    while engine._busy:
        threading.Event().wait(0.01)
    assert trials.begun_again(store_in(tmp_path)) == []
    assert len(happened(tmp_path, "effect")) == len(TOPICS) + 1
    engine.close()
    keep("engines", "processes: workers stopped and woken", {"stops": 1}, [])


@pytest.mark.sweep
def test_without_a_look_at_leases_a_worker_that_hangs_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control."""
    looks = threading.Semaphore(0)

    def overlooked(found: Any) -> bool:
        if found.is_gone:
            looks.release()
        return False

    monkeypatch.setattr(following, "is_lost", overlooked)
    engine = ProcessEngine(2, poll_seconds=0.05, lease_seconds=trials.LEASE_SECONDS)

    async def waited() -> bool:
        running = asyncio.ensure_future(
            trials.begin(engine, store_in(tmp_path), tmp_path, stops_at=TOPICS[1])
        )
        pid = int(await asyncio.to_thread(wait_for, tmp_path, "at"))
        await asyncio.to_thread(trials.hang, pid, store_in(tmp_path))
        for _ in range(10):
            await asyncio.to_thread(looks.acquire)
        is_over = running.done()
        os.kill(pid, signal.SIGCONT)
        leave(tmp_path, "go")
        await running
        return is_over

    assert not asyncio.run(waited())
    engine.close()
    keep("engines", "control: nobody looks at leases", {"found": 1}, [])


@pytest.mark.sweep
def test_killed_again_and_again_nothing_committed_is_repeated(
    engine: ProcessEngine, tmp_path: Path, campaign: bool
) -> None:
    kills = 80 if campaign else 3
    urls = (f"sqlite:{tmp_path}/store-{number}" for number in range(10_000))
    counts, wrong = trials.killed_often(lambda url: engine, lambda: next(urls), tmp_path, kills)
    keep("engines", "processes: workers killed", counts, wrong)
    assert wrong == []
    assert counts["kills"] == kills


def test_a_workflow_of_the_engine_leaves_a_journal_for_each_step(
    engine: ProcessEngine, tmp_path: Path
) -> None:
    result = trials.run(engine, store_in(tmp_path), tmp_path)
    assert trials.outcome(result) == trials.expected(tmp_path / "undisturbed")
    with holdfast.open(store_in(tmp_path), create=False) as service:
        child = service.recording.ended("WF-1~write")
        assert child is not None and [task["id"] for task in child.tasks] == ["write"]
