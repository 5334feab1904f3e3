"""Runs hear when the process is told to end, and afterwards everything is as it was."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from holdfast.execution.signals import heeded
from tests.execution.journals import PATIENCE_SECONDS

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
