"""How runs end and go on: answered while nobody ran them, told to end, with a store that fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Context, RunOptions, Workflow
from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain.errors import AgentFailedError, DiskFullError
from holdfast.testing import FailingStore
from tests.process.evidence import keep
from tests.process.running import run
from tests.recovery.places import KINDS
from tests.sizes import daily

STORES = {"file": "file:{}/store", "sqlite": "sqlite:{}/store.db"}


@pytest.mark.parametrize("kind", daily(KINDS, ["file", "postgres"]))
def test_an_approval_is_answered_while_the_process_is_down_and_asked_for_once(
    kind: str, fast_folder: Path
) -> None:
    told = run("executor_scenes", "approval", kind=kind, folder=str(fast_folder))
    assert told["word"] == "completed"
    assert told["results"]["release"] == {"granted": True, "by": "ada", "note": "read it", "value": "ada"}
    # Three processes asked; the second answer came too late.
    assert told["bodies"] == {"prepare": 1, "release": 3}
    assert told["events"] == ["APPROVAL_REQUESTED", "APPROVAL_GRANTED"]
    assert ["APPROVAL_GRANTED", "ada"] in told["trail"]
    assert told["faults"] == 0


#: Its agent is on the loop, or in a thread.
ENDS = [("file", False), ("sqlite", True), ("postgres", False)]


@pytest.mark.parametrize(("kind", "is_async"), daily(product(KINDS, [True, False]), ENDS))
def test_a_process_that_is_told_to_end_makes_a_last_checkpoint_and_another_one_goes_on(
    kind: str, is_async: bool, fast_folder: Path
) -> None:
    told = run("executor_scenes", "terminated", kind=kind, folder=str(fast_folder), is_async=is_async)
    stopped, second, third = told["lives"]
    assert (stopped["word"], stopped["stands"], stopped["resumable"]) == ("stopped", "stopped", True)
    assert (second["word"], second["ran"], second["kept"]) == ("completed", 1, 1)
    assert told["bodies"] == {"first": 1, "second": 2}
    # What ended cleanly is told again, and not run.
    assert (second["stands"], second["resumable"]) == ("completed", False)
    assert (third["word"], third["ran"], third["results"]) == ("completed", 0, second["results"])


def make_crowd() -> Workflow:
    """Declare a small workflow with a fan-out and a loop."""
    team = Workflow("crowd")

    @team.agent
    def plan(ctx: Context) -> list[int]:
        return [ctx.inputs["n"] * 10 + one for one in range(2)]

    @team.agent(after=plan, each=lambda run: run.result("plan"))
    async def double(ctx: Context, number: int) -> int:
        ctx.metrics(numbers=1)
        return number * 2

    loop = team.loop("more", after=double)

    @loop.evaluator
    async def enough(ctx: Context) -> dict[str, Any]:
        return {"content": ctx.iteration >= 2, "sum": sum(ctx.result("double"))}

    @team.agent(after=loop)
    async def end(ctx: Context) -> list[Any]:
        return [ctx.inputs["n"], ctx.result("enough")["sum"]]

    return team


@pytest.mark.parametrize("kind", STORES)
def test_very_many_workflows_run_in_one_process_at_once(kind: str, fast_folder: Path, campaign: bool) -> None:
    count = 1_000 if campaign else 50
    team = make_crowd()

    async def run_all() -> list[holdfast.RunResult]:
        async with await holdfast.open_async(STORES[kind].format(fast_folder)) as service:
            runs = [team.run(service, f"W-{number}", {"n": number}) for number in range(count)]
            return await asyncio.gather(*runs)

    ended = asyncio.run(run_all())
    wrong = [one.workflow_id for one in ended if not one.is_completed or one.warnings]
    wrong += [
        f"W-{n}" for n, one in enumerate(ended) if one.value != [n, 40 * n + 2] or one.metrics["numbers"] != 2
    ]
    keep("executor", f"workflows at once, {kind}", {"workflows": count}, wrong)
    assert wrong == []
    with holdfast.open(STORES[kind].format(fast_folder)) as service:
        assert service.audit.verify().fault_count == 0
        again = [team.run_sync(service, f"W-{number}") for number in range(0, count, count // 10)]
        assert all(one.ran == 0 and one.value == ended[int(one.workflow_id[2:])].value for one in again)


def test_an_effect_that_is_unknown_again_is_asked_about_again(fast_folder: Path) -> None:
    """Who allowed one more try allowed no third."""
    url, calls = STORES["file"].format(fast_folder), list[str]()
    team = Workflow("paying")

    @team.agent
    def pay(ctx: Context) -> str:
        def call(key: str) -> str:
            calls.append(key)
            if len(calls) < 3:
                raise TimeoutError("nobody knows")
            return "paid"

        paid: str = ctx.effect("pay", call)
        return paid

    waited = []
    for _ in range(2):
        with pytest.raises(AgentFailedError):
            team.run_sync(url, "W-1")
        for _ in range(2):
            waited.append(team.run_sync(url, "W-1", options=RunOptions(waits=False)).waiting)
        with holdfast.open(url) as service:
            service.requests.put("W-1", "approval", actor="ada", data={"granted": True})
    assert team.run_sync(url, "W-1").value == "paid"
    assert len(calls) == 3 and len(set(calls)) == 1
    assert waited[0] == waited[1] != waited[2] == waited[3]


class Told:
    """A subscriber that counts."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(self, kind: str, particulars: Mapping[str, Any]) -> None:
        self.counts[kind] += 1


@pytest.mark.parametrize("on_fault", ["raise", "degrade"])
@pytest.mark.parametrize("kind", STORES)
def test_a_store_that_fails_for_a_while_never_stops_a_run(
    kind: str, on_fault: str, fast_folder: Path
) -> None:
    config = Config(store=STORES[kind].format(fast_folder), on_fault=on_fault, background=False)
    store, told = FailingStore(open_store(config)), Told()
    team = Workflow("unlucky")

    @team.agent
    def first(ctx: Context) -> str:
        store.fail("commit", DiskFullError("no space is left"), times=1_000)
        return "first"

    @team.agent(after=first)
    def second(ctx: Context) -> str:
        ctx.checkpoint("in the middle")
        return "second"

    @team.agent(after=second)
    def third(ctx: Context) -> str:
        store._failures.clear()
        return "third"

    with CheckpointService(build_kit(store, config)) as service:
        result = team.run_sync(service, "W-1", options=RunOptions(subscribers=(told,)))
        assert result.is_completed
        assert result.results == {name: name for name in ("first", "second", "third")}
        if on_fault == "raise":
            assert told.counts["checkpoint_failed"] >= 1 and result.warnings
    with holdfast.open(config.store) as service:
        again = team.run_sync(service, "W-1")
        assert (again.ran, again.results) == (0, result.results)


@pytest.mark.parametrize("kind", STORES)
def test_a_full_disk_never_stops_a_run(kind: str, fast_folder: Path) -> None:
    """For real: no file may grow from the second agent on, until the third is done."""
    played = run("executor_scenes", "full_disk", kind=kind, folder=str(fast_folder))
    assert played["word"] == "completed"
    assert played["results"] == {name: name for name in ("first", "second", "third", "fourth")}
    assert played["again"] == played["results"] and played["ran"] == 0
    assert played["faults"] == 0
