"""Runs hear when the process is told to end, and afterwards everything is as it was."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import holdfast
from holdfast import Workflow
from holdfast.execution.signals import heeded
from tests.execution.journals import PATIENCE_SECONDS
from tests.execution.runs import latest, opened

HEEDED = [signal.SIGTERM, signal.SIGINT]
#: As a process has them that was started at a terminal; whoever runs the tests may have been given others.
USUAL = [signal.SIG_DFL, signal.default_int_handler]


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = [signal.signal(number, usual) for number, usual in zip(HEEDED, USUAL, strict=True)]
    yield
    now = [signal.getsignal(number) for number in HEEDED]
    for number, handler in zip(HEEDED, before, strict=True):
        signal.signal(number, handler)
    assert now == USUAL


async def heard(event: asyncio.Event) -> None:
    await asyncio.wait_for(event.wait(), PATIENCE_SECONDS)


def send(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", HEEDED)
def test_each_run_of_a_loop_is_told(number: signal.Signals) -> None:
    async def work() -> None:
        first, second = asyncio.Event(), asyncio.Event()
        with heeded(first.set, enabled=True), heeded(second.set, enabled=True):
            send(number)
            await heard(first)
            await heard(second)

    asyncio.run(work())


def test_a_loop_that_waits_for_nothing_else_wakes_up() -> None:
    async def work() -> None:
        event = asyncio.Event()
        with heeded(event.set, enabled=True):
            threading.Timer(0.01, send, (signal.SIGTERM,)).start()
            await heard(event)

    asyncio.run(work())


def test_the_signals_are_given_back_with_the_last_run() -> None:
    async def work() -> None:
        before = [signal.getsignal(number) for number in HEEDED]
        with heeded(int, enabled=True):
            taken = [signal.getsignal(number) for number in HEEDED]
            with heeded(int, enabled=True):
                assert [signal.getsignal(number) for number in HEEDED] == taken
            assert [signal.getsignal(number) for number in HEEDED] == taken != before
        assert [signal.getsignal(number) for number in HEEDED] == before

    asyncio.run(work())
    # And with another loop again.
    asyncio.run(work())


def test_they_are_given_back_when_a_run_fails() -> None:
    async def work() -> None:
        before = signal.getsignal(signal.SIGTERM)
        with pytest.raises(RuntimeError), heeded(int, enabled=True):
            raise RuntimeError
        assert signal.getsignal(signal.SIGTERM) is before

    asyncio.run(work())


def test_a_handler_of_the_application_comes_back() -> None:
    seen: list[int] = []

    def own(number: int, frame: FrameType | None) -> None:
        seen.append(number)

    before = signal.signal(signal.SIGTERM, own)

    async def work() -> None:
        event = asyncio.Event()
        with heeded(event.set, enabled=True):
            send(signal.SIGTERM)
            await heard(event)

    try:
        asyncio.run(work())
        assert signal.getsignal(signal.SIGTERM) is own and seen == []
        send(signal.SIGTERM)
        assert seen == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_handler_that_the_application_gave_to_its_loop_works_during_the_run_and_after() -> None:
    async def work() -> list[str]:
        loop, told = asyncio.get_running_loop(), list[str]()
        run, own = asyncio.Event(), asyncio.Event()

        def on_own() -> None:
            told.append("own")
            own.set()

        loop.add_signal_handler(signal.SIGTERM, on_own)
        try:
            with heeded(run.set, enabled=True):
                send(signal.SIGTERM)
                await heard(run)
                await heard(own)
            own.clear()
            send(signal.SIGTERM)
            await heard(own)
        finally:
            loop.remove_signal_handler(signal.SIGTERM)
        return told

    assert asyncio.run(work()) == ["own", "own"]


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)

    async def work() -> None:
        with heeded(int, enabled=True):
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGINT) is not before

    try:
        asyncio.run(work())
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def untouched(*, enabled: bool) -> Callable[[], None]:
    async def work() -> None:
        before = [signal.getsignal(number) for number in HEEDED]
        with heeded(int, enabled=enabled):
            assert [signal.getsignal(number) for number in HEEDED] == before

    return lambda: asyncio.run(work())


def test_nobody_listens_where_that_is_not_wanted() -> None:
    untouched(enabled=False)()


def test_only_the_main_thread_can_listen() -> None:
    faults: list[BaseException] = []

    def run() -> None:
        try:
            untouched(enabled=True)()
        except BaseException as fault:
            faults.append(fault)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    assert faults == []


def endless() -> Workflow:
    """Declare a workflow that sends the process a signal, and would then wait for ever."""
    workflow = Workflow("endless")

    @workflow.agent
    async def wait(ctx: Any) -> None:
        send(signal.SIGTERM)
        await asyncio.Event().wait()

    return workflow


def test_the_applications_handler_hears_of_it_once_the_last_run_has_stopped_and_is_recorded() -> None:
    seen: list[str] = []

    def own(number: int, frame: FrameType | None) -> None:
        seen.extend(latest(service, name).status for name in ("WF-1", "WF-2"))

    async def both() -> list[str]:
        return [str(one.status) for one in await asyncio.gather(*(w.run(service, n) for w, n in runs))]

    runs = [(endless(), "WF-1"), (endless(), "WF-2")]
    before = signal.signal(signal.SIGTERM, own)
    try:
        with opened() as service:
            assert asyncio.run(both()) == ["stopped", "stopped"]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == ["stopped", "stopped"]


def test_a_run_that_would_begin_meanwhile_waits_until_the_handler_has_heard() -> None:
    order: list[str] = []

    async def batch() -> list[str]:
        room = asyncio.Semaphore(1)

        async def one(workflow: Workflow, name: str) -> str:
            async with room:
                result = await workflow.run(service, name)
            order.append(name)
            return str(result.status)

        return list(await asyncio.gather(one(endless(), "WF-1"), one(brief, "WF-2")))

    brief = Workflow("brief")
    brief.agent(name="work")(lambda ctx: order.append("work"))
    before = signal.signal(signal.SIGTERM, lambda *_: order.append("handler"))
    try:
        with opened() as service:
            assert asyncio.run(batch()) == ["stopped", "completed"]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert order == ["handler", "WF-1", "work", "WF-2"]


def test_who_interrupts_a_run_at_the_keyboard_interrupts_the_program() -> None:
    workflow = Workflow("w")

    @workflow.agent
    async def wait(ctx: Any) -> None:
        send(signal.SIGINT)
        await asyncio.Event().wait()

    with opened() as service:
        with pytest.raises(KeyboardInterrupt):
            workflow.run_sync(service, "WF-1")
        assert latest(service).status == "stopped"


BATCH = """
import asyncio, sys
from holdfast import Workflow
w = Workflow("w")
@w.agent
async def wait(ctx):
    print("begun", flush=True)
    await asyncio.Event().wait()
for number in range(3):
    w.run_sync(sys.argv[1], f"WF-{number}")
"""


def test_a_process_that_handles_no_signals_ends_by_the_one_it_was_sent(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    process = subprocess.Popen([sys.executable, "-c", BATCH, store], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, rest) == (-signal.SIGTERM, "")
    with holdfast.open(store) as service:
        assert latest(service, "WF-0").status == "stopped" and service.load_latest("WF-1") is None
