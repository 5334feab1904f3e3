from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import RunOptions, Workflow
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call
from holdfast.cli.output import Output
from holdfast.cli.run_carrying import Order, carry_out
from holdfast.domain.errors import AgentFailedError, LeaseHeldError, ResultLostError, StoreNotFoundError
from tests.execution.gates import Gates

QUIET = Call("own", Output(quiet=True))


def workflow_of(function: Any, **options: Any) -> Workflow:
    workflow = Workflow("team")
    workflow.agent(name="only", **options)(function)
    return workflow


def order_of(workflow: Workflow, *, creates: bool = True) -> Order:
    return Order(
        "flows:team",
        workflow,
        "W",
        lambda service, options: workflow.run(service, "W", options=options),
        RunOptions(),
        creates=creates,
    )


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_run_ends_with_a_result_and_what_was_counted() -> None:
    ended = carry_out(QUIET, order_of(workflow_of(lambda ctx: 7)))
    assert ended.result is not None and ended.result.value == 7
    assert (ended.status, ended.fault, ended.signal) == ("completed", None, None)
    assert (ended.tally.ran, ended.tally.status) == (1, "completed")


def test_what_a_run_failed_with_is_answered_once_it_had_begun() -> None:
    def fail(ctx: Any) -> None:
        raise ValueError("no fuel")

    ended = carry_out(QUIET, order_of(workflow_of(fail)))
    assert isinstance(ended.fault, AgentFailedError)
    assert (ended.result, ended.status) == (None, "failed")


def test_what_fails_outside_of_agents_is_the_programs() -> None:
    workflow = workflow_of(lambda ctx: 7)

    async def start(service: Any, options: RunOptions) -> Any:
        await workflow.run(service, "W", options=options)
        raise LookupError("what the program does with a result")

    ended = carry_out(QUIET, replace(order_of(workflow), start=start))
    assert isinstance(ended.fault, Failure)
    assert (ended.fault.code, ended.fault.leave) == ("program_failed", Exit.RUN_FAILED)


def test_a_run_that_could_not_begin_raises() -> None:
    with pytest.raises(StoreNotFoundError):
        carry_out(QUIET, order_of(workflow_of(lambda ctx: 7), creates=False))
    with holdfast.open("own") as service:
        service.acquire_lease("W", "somebody else")
        with pytest.raises(LeaseHeldError):
            carry_out(QUIET, order_of(workflow_of(lambda ctx: 7)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_run_and_what_handled_it_before_does_so_again(number: signal.Signals) -> None:
    async def signalled(ctx: Any) -> None:
        import asyncio

        signal.raise_signal(number)
        await asyncio.Event().wait()

    def handler(*_: Any) -> None:
        raise AssertionError("it is heeded by the run")

    before = signal.signal(number, handler)
    try:
        ended = carry_out(QUIET, order_of(workflow_of(signalled)))
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)
    assert (ended.signal, ended.status, ended.result) == (number, "stopped", None)


@pytest.mark.parametrize(
    ("number", "code", "leave"),
    [(signal.SIGTERM, "terminated", Exit.TERMINATED), (signal.SIGINT, "interrupted", Exit.INTERRUPTED)],
)
def test_a_signal_before_the_run_began_names_no_failure_and_nothing_to_resume(
    number: signal.Signals, code: str, leave: Exit
) -> None:
    workflow = workflow_of(lambda ctx: 7)

    async def signalled(service: Any, options: RunOptions) -> Any:
        import asyncio

        signal.raise_signal(number)
        await asyncio.sleep(0)
        return await workflow.run(service, "W", options=options)

    # A shell leaves what it starts in the background a SIGINT that is ignored, and stays so.
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(Failure, match="before the run began") as told:
            carry_out(QUIET, replace(order_of(workflow), start=signalled))
    finally:
        signal.signal(number, before)
    assert (told.value.code, told.value.leave) == (code, leave)


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        ended = carry_out(QUIET, order_of(workflow_of(lambda ctx: signal.raise_signal(signal.SIGINT))))
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.status == "completed"


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_the_store_does_not_have_is_told_as_it_is_once_that_is_closed(
    is_kept: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gates = Gates(monkeypatch, tmp_path)
    if not is_kept:
        gates.without_a_second()
    ended = carry_out(Call(gates.url, QUIET.output), order_of(workflow_of(lambda ctx: gates.shut())))
    assert ended.result is not None and ended.result.is_completed
    assert ended.unwritten.is_lost is not is_kept
    assert gates.kept == ([ended.unwritten.place] if is_kept else [])
    assert ended.result.warnings == (ended.unwritten.text,) and not ended.is_durable


def test_a_run_does_not_degrade_where_that_is_configured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gates = Gates(monkeypatch, tmp_path)
    monkeypatch.setenv("HOLDFAST_ON_FAULT", "raise")
    ended = carry_out(Call(gates.url, QUIET.output), order_of(workflow_of(lambda ctx: gates.shut())))
    assert isinstance(ended.fault, ResultLostError) and ended.result is ended.fault.result
    assert not ended.is_durable and gates.kept == []


@pytest.mark.parametrize("is_kept", [True, False])
def test_what_the_store_refused_in_the_end_is_told_too(
    is_kept: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gates = Gates(monkeypatch, tmp_path)
    if not is_kept:
        gates.without_a_second()
    workflow = workflow_of(lambda ctx: gates.shut())

    async def start(service: Any, options: RunOptions) -> Any:
        result = await workflow.run(service, "W", options=options)
        with holdfast.open(gates.url) as other:
            lease = other.lease_of("W")
            assert lease is not None
            other.release_lease(lease)
            other.acquire_lease("W", "another worker")
        gates.open()
        return result

    ended = carry_out(Call(gates.url, QUIET.output), replace(order_of(workflow), start=start))
    assert ended.result is not None and ended.result.is_completed
    assert ended.unwritten.is_refused and ended.unwritten.is_lost is not is_kept
    assert gates.kept == ([ended.unwritten.place] if is_kept else [])
    assert ended.result.warnings == (ended.unwritten.text,) and not ended.is_durable
