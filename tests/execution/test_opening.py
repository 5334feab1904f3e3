"""Beginning a run, and going on with one: store, lease, state."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import AgentFailedError, App, RunOptions, TypeRegistry, Workflow
from holdfast.domain.errors import (
    GraphChangedError,
    InvalidIdError,
    InvalidStateError,
    LeaseHeldError,
    LeaseLostError,
    ResultLostError,
    UnsupportedTypeError,
)
from holdfast.execution.context import Context
from holdfast.execution.options import LEASE_SECONDS
from tests.execution.gates import Gates
from tests.execution.runs import chain, opened, run


def one(ctx: Context) -> int:
    return 1


def two(ctx: Context) -> int:
    return 2


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_a_run_opens_a_store_by_its_url_and_closes_it(tmp_path: Path, scheme: str) -> None:
    url = f"{scheme}:{tmp_path}/store"
    result = chain(one, two).run_sync(url, "WF-1")
    assert result.value == 2
    with holdfast.open(url) as service:
        assert service.workflows() == ["WF-1"] and service.lease_of("WF-1") is None


def test_a_run_over_an_async_service(tmp_path: Path) -> None:
    async def main() -> Any:
        async with holdfast.open_async(f"file:{tmp_path}/store") as service:
            return await chain(one).run(service, "WF-1")

    assert asyncio.run(main()).value == 1


def test_running_an_id_that_ended_answers_what_came_of_it() -> None:
    calls: list[int] = []
    workflow = chain(lambda_named("a", lambda ctx: calls.append(1)))
    with opened() as service:
        first, second = run(workflow, service), run(workflow, service)
    assert calls == [1] and first.results == second.results
    assert second.resumed and second.ran == 0 and second.kept == 1


def lambda_named(name: str, function: Any) -> Any:
    function.__name__ = name
    return function


def test_two_runs_of_one_id_at_once_are_one_too_many() -> None:
    async def main(service: holdfast.CheckpointService) -> list[Any]:
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def slow(ctx: Context) -> int:
            begun.set()
            await go_on.wait()
            return 1

        workflow = chain(slow)
        first = asyncio.ensure_future(workflow.run(service, "WF-1"))
        await begun.wait()
        with pytest.raises(LeaseHeldError):
            await workflow.run(service, "WF-1")
        go_on.set()
        return [(await first).value]

    with opened() as service:
        assert asyncio.run(main(service)) == [1]


def test_a_run_that_lost_its_lease_ends_and_records_nothing_more() -> None:
    async def main(service: holdfast.CheckpointService) -> None:
        async def slow(ctx: Context) -> int:
            store = service._engine.kit.store
            lease = store.lease("WF-1")
            assert lease is not None
            store.release(lease)
            store.acquire("WF-1", "somebody else", 60)
            await asyncio.Event().wait()
            return 1

        with pytest.raises(LeaseLostError):
            await chain(slow).run(service, "WF-1", options=RunOptions(lease_seconds=0.03))

    with opened() as service:
        asyncio.run(main(service))
        state = service.load_latest("WF-1")
        assert state is not None and state.status == "in_progress"


def test_a_changed_graph_is_told_and_what_fits_is_kept() -> None:
    broken = [True]

    def two(ctx: Context) -> int:
        if broken:
            raise RuntimeError("broken")
        return 2

    def inserted(ctx: Context) -> int:
        return 7

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(one, two), service)
        broken.clear()
        with pytest.raises(GraphChangedError, match="'inserted' is new"):
            run(chain(one, inserted, two), service, strict=True)
        result = run(chain(one, inserted, two), service)
        assert result.results == {"one": 1, "inserted": 7, "two": 2} and result.kept == 1
        assert any("'inserted' is new" in text for text in result.warnings)
        state = service.load_latest("WF-1")
        assert state is not None
        names = [agent["name"] for stage in state.dag_structure["stages"] for agent in stage["agents"]]
        assert names == ["one", "inserted", "two"]


def test_a_graph_is_recorded_again_only_where_it_has_changed() -> None:
    broken = [True]

    def two(ctx: Context) -> int:
        if broken.pop():
            raise RuntimeError("broken")
        return 2

    def inserted(ctx: Context) -> int:
        return 7

    with opened() as service:
        for workflow in (chain(one, two), chain(one, two), chain(one, two, inserted)):
            broken.append(workflow.plan.agents.keys() == {"one", "two"})
            with suppress(AgentFailedError):
                run(workflow, service)
        told = [event.data["fields"] for event in service.events("WF-1", type="RUN_UPDATED")]
    resumed = [fields for fields in told if fields["status"] == "in_progress"]
    assert [sorted(fields) for fields in resumed] == [["status"], ["dag_structure", "status", "total_steps"]]


def test_an_agent_that_was_renamed_keeps_its_result() -> None:
    calls: list[str] = []

    def old(ctx: Context) -> int:
        calls.append("old")
        return 1

    def new(ctx: Context) -> int:
        calls.append("new")
        return 1

    def last(ctx: Context) -> int:
        if len(calls) == 1:
            calls.append("last")
            raise RuntimeError("broken")
        return int(ctx.result("new")) + 1

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(old, last), service)
        assert run(chain(new, last), service, renamed={"old": "new"}).value == 2
    assert calls == ["old", "last"]


def test_the_inputs_of_a_run_are_those_it_began_with() -> None:
    broken = [True]

    def agent(ctx: Context) -> Any:
        if broken:
            raise RuntimeError("broken")
        return ctx.inputs

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(agent), service, inputs={"n": 1})
        broken.clear()
        assert run(chain(agent), service, inputs={"n": 2}).value == {"n": 1}


def test_an_id_that_is_none_is_refused_before_anything_happens() -> None:
    with opened() as service:
        with pytest.raises(InvalidIdError):
            run(chain(one), service, "")
        assert service.workflows() == []


def test_values_of_all_kinds_come_back_from_a_crash_as_they_were() -> None:
    value = {"t": (1, 2), "s": {3}, "b": b"\x00", "f": 1.0, "n": None, "big": 2**80}
    broken = [True]

    def first(ctx: Context) -> Any:
        return value

    def last(ctx: Context) -> Any:
        if broken:
            raise RuntimeError("broken")
        return ctx.result("first")

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(first, last), service)
        broken.clear()
        assert run(chain(first, last), service).value == value


def test_a_lease_lives_for_half_a_minute_by_default() -> None:
    assert RunOptions().lease_seconds == LEASE_SECONDS == 30


def test_an_empty_workflow_is_over_at_once() -> None:
    with opened() as service:
        assert run(Workflow("empty"), service).is_completed


def test_inputs_that_cannot_be_stored_are_refused_before_anything_runs() -> None:
    calls: list[int] = []

    def agent(ctx: Context) -> None:
        calls.append(1)

    with opened() as service:
        with pytest.raises(UnsupportedTypeError, match="client"):
            run(chain(agent), service, inputs={"customer": "ann", "client": object()})
        assert calls == [] and service.workflows() == []
        with pytest.raises(InvalidStateError, match="list"):
            run(chain(agent), service, inputs=["x"])


def test_other_inputs_than_the_run_began_with_are_told() -> None:
    broken = [True]

    def agent(ctx: Context) -> Any:
        if broken:
            raise RuntimeError("broken")
        return 1

    with opened() as service:
        with pytest.raises(AgentFailedError):
            run(chain(agent), service, inputs={"n": 1})
        broken.clear()
        assert any("other inputs" in text for text in run(chain(agent), service, inputs={"n": 2}).warnings)


def test_a_workflow_brings_its_types_along(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Offer:
        price: int

    types = TypeRegistry()
    types.register(Offer)

    def offer(ctx: Context) -> Offer:
        return Offer(3)

    def price(ctx: Context) -> int:
        return int(ctx.result("offer").price)

    workflow = chain(offer, price, app=App(types=types))
    assert workflow.run_sync(f"file:{tmp_path}/store", "WF-1").value == 3


def test_agents_see_the_inputs_that_were_stored_whatever_their_caller_does_with_them() -> None:
    given: dict[str, Any] = {"list": [1], "pair": (1, [2])}

    def first(ctx: Context) -> Any:
        given["list"].append(2)
        given["pair"][1].append(3)
        return ctx.inputs

    with opened() as service:
        assert run(chain(first), service, inputs=given).value == {"list": [1], "pair": (1, [2])}


def test_a_run_that_ended_tells_of_other_inputs_and_strict_refuses_another_graph() -> None:
    with opened() as service:
        run(chain(one), service, inputs={"n": 1})
        assert run(chain(one), service, inputs={"n": 1}).warnings == ()
        assert any("other inputs" in text for text in run(chain(one), service, inputs={"n": 2}).warnings)
        assert run(chain(one), service, strict=True).value == 1
        assert run(chain(one, two), service).is_completed
        with pytest.raises(GraphChangedError, match="'two' is new"):
            run(chain(one, two), service, strict=True)


@pytest.fixture
def gates(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Gates:
    return Gates(monkeypatch, tmp_path)


def shutting(gates: Gates) -> Workflow:
    """Declare a workflow at whose work the store stops taking commits."""

    def work(ctx: Context) -> int:
        gates.shut()
        return 7

    return chain(one, work)


def test_what_a_run_could_not_write_is_told_with_where_it_is_kept(gates: Gates) -> None:
    result = shutting(gates).run_sync(gates.url, "W")
    [place] = gates.kept
    assert result.is_completed and result.value == 7
    assert not result.is_durable and result.unwritten.place == place
    assert [place in text for text in result.warnings] == [True]
    with holdfast.open(place, read_only=True) as service:
        assert service.events("W") != []


def test_what_waited_and_was_written_in_the_end_is_no_warning(gates: Gates) -> None:
    def last(kind: str, data: Any) -> None:
        if kind == "run_ended":
            gates.open()

    result = shutting(gates).run_sync(gates.url, "W", options=RunOptions(subscribers=(last,)))
    assert result.is_durable and result.warnings == () and gates.kept == []
    with holdfast.open(gates.url, read_only=True) as service:
        assert service.load_latest("W").status == "completed"  # type: ignore[union-attr]
        # As the checkpoint is listed, and not only in its state.
        assert service.list_checkpoints("W")[0].status == "completed"


def test_what_is_kept_nowhere_is_raised_and_the_caller_has_the_result(gates: Gates) -> None:
    gates.without_a_second()
    with pytest.raises(ResultLostError, match="LOST") as told:
        shutting(gates).run_sync(gates.url, "W")
    assert told.value.result.value == 7 and told.value.result.unwritten.commits > 0


def taken_over(gates: Gates) -> RunOptions:
    """Let the store take commits again at the end of a run, when somebody else has the workflow."""

    def last(kind: str, data: Any) -> None:
        if kind == "run_ended":
            with holdfast.open(gates.url) as other:
                lease = other.lease_of("W")
                assert lease is not None
                other.release_lease(lease)
                other.acquire_lease("W", "another worker")
            gates.open()

    return RunOptions(subscribers=(last,))


def test_what_the_store_refused_in_the_end_is_told_with_why_and_where_it_is_kept(gates: Gates) -> None:
    result = shutting(gates).run_sync(gates.url, "W", options=taken_over(gates))
    [place] = gates.kept
    assert result.is_completed and result.value == 7
    assert not result.is_durable and result.unwritten.place == place
    [warning] = result.warnings
    assert place in warning and result.unwritten.reason in warning and "lease" in result.unwritten.reason
    with holdfast.open(gates.url, read_only=True) as service:
        assert [meta.id.sequence for meta in service.list_checkpoints("W")] == [1]


def test_what_the_store_refused_in_the_end_and_nobody_keeps_is_raised(gates: Gates) -> None:
    gates.without_a_second()
    with pytest.raises(ResultLostError, match="LOST") as told:
        shutting(gates).run_sync(gates.url, "W", options=taken_over(gates))
    assert told.value.result.value == 7 and told.value.result.unwritten.commits > 0


@pytest.mark.parametrize("is_ended_elsewhere", [True, False])
def test_what_was_refused_of_one_run_is_no_part_of_the_next(gates: Gates, is_ended_elsewhere: bool) -> None:
    calls: list[int] = []

    def work(ctx: Context) -> int:
        calls.append(1)
        if len(calls) == 1:
            gates.shut()
        return 7

    gates.without_a_second()
    subscribers = taken_over(gates).subscribers
    with holdfast.open(gates.url, on_fault="degrade") as service:
        with pytest.raises(ResultLostError):
            run(chain(one, work), service, "W", subscribers=subscribers)
        with holdfast.open(gates.url) as other:
            lease = other.lease_of("W")
            assert lease is not None
            other.release_lease(lease)
            if is_ended_elsewhere:
                assert run(chain(one, work), other, "W").is_completed
        result = run(chain(one, work), service, "W")
        assert result.is_completed and result.is_durable and result.warnings == ()
    assert len(calls) == 2


def test_in_an_open_service_what_waits_goes_on_waiting(gates: Gates) -> None:
    with holdfast.open(gates.url, on_fault="degrade") as service:
        result = run(shutting(gates), service)
        assert result.is_completed and "in memory only" in result.warnings[-1]
        gates.open()
        service.flush()
    with holdfast.open(gates.url, read_only=True) as service:
        assert service.load_latest("WF-1").status == "completed"  # type: ignore[union-attr]


def test_a_run_does_not_degrade_where_that_is_configured(
    gates: Gates, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_ON_FAULT", "raise")
    with pytest.raises(ResultLostError) as told:
        shutting(gates).run_sync(gates.url, "W")
    assert told.value.result.value == 7 and gates.kept == []


def test_without_degrading_what_a_later_checkpoint_has_is_not_lost(gates: Gates) -> None:
    def again(ctx: Context) -> int:
        gates.open()
        return 8

    workflow = shutting(gates)
    workflow.agent(after="steps")(again)
    with holdfast.open(gates.url, on_fault="raise") as service:
        result = run(workflow, service)
        assert result.value == 8 and result.is_durable and result.warnings != ()
        assert service.load_latest("WF-1").status == "completed"  # type: ignore[union-attr]
