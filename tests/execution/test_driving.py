"""One generator, driven in a thread or on a loop, asks for the same and is answered the same."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.domain.errors import UnsupportedTypeError
from holdfast.domain.reducers import MESSAGE_EVENT
from holdfast.execution.driving import (
    Abandoned,
    Asking,
    Attempt,
    Call,
    Driver,
    Note,
    OnLoop,
    RowDriver,
    Together,
)
from holdfast.execution.journal import Fact, Journal, Save
from tests.execution.journals import PATIENCE_SECONDS, begun
from tests.execution.runs import opened

Drive = Callable[[Journal, Asking], Any]


def in_a_thread(journal: Journal, asking: Asking) -> Any:
    async def work() -> Any:
        driver = Driver(journal, asyncio.get_running_loop())
        return await asyncio.to_thread(driver.drive, asking)

    return asyncio.run(work())


def without_a_loop(journal: Journal, asking: Asking) -> Any:
    return Driver(journal, None).drive(asking)


def on_the_loop(journal: Journal, asking: Asking) -> Any:
    async def work() -> Any:
        return await Driver(journal, asyncio.get_running_loop()).drive_async(asking)

    return asyncio.run(work())


def in_a_row(journal: Journal, asking: Asking) -> Any:
    async def work() -> Any:
        driver = RowDriver(journal, asyncio.get_running_loop())
        return await asyncio.to_thread(driver.drive, asking)

    return asyncio.run(work())


@pytest.fixture(params=[in_a_thread, without_a_loop, on_the_loop, in_a_row])
def drive(request: pytest.FixtureRequest) -> Drive:
    return request.param


@pytest.fixture
def journal() -> Iterator[Journal]:
    with opened() as service:
        yield begun(service)


def message(text: Any) -> Fact:
    return Fact(MESSAGE_EVENT, {"message": text}, "plan", "plan")


def test_facts_and_checkpoints_are_recorded_as_they_are_asked_for(drive: Drive, journal: Journal) -> None:
    def asking() -> Asking:
        nothing = yield message(1)
        first = yield Save("one")
        both = yield Together((message(2), Save("two")))
        return nothing, first.sequence, both.sequence

    assert drive(journal, asking()) == (None, 2, 3)
    assert journal.fields["messages"] == [1, 2]


def test_functions_of_the_application_are_called_sync_or_async(drive: Drive, journal: Journal) -> None:
    async def later(value: int, *, more: int) -> int:
        await asyncio.sleep(0)
        return value + more

    def asking() -> Asking:
        first = yield Call(lambda value: value * 2, (4,))
        second = yield Call(later, (1,), (("more", 2),))
        third = yield Call(lambda: later(5, more=5))
        return first, second, third

    assert drive(journal, asking()) == (8, 3, 10)


def test_what_has_to_be_awaited_on_the_loop_is(drive: Drive, journal: Journal) -> None:
    async def where() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    def asking() -> Asking:
        return (yield OnLoop(where))

    assert drive(journal, asking()) is not None


@pytest.mark.parametrize("fault", [ValueError("no"), KeyboardInterrupt(), TimeoutError()])
def test_what_goes_wrong_is_thrown_where_it_was_asked_for(
    drive: Drive, journal: Journal, fault: BaseException
) -> None:
    def failing() -> None:
        raise fault

    def asking() -> Asking:
        try:
            yield Call(failing)
        except BaseException as caught:
            yield message(type(caught).__name__)
            return "handled"

    assert drive(journal, asking()) == "handled"
    assert journal.fields["messages"] == [type(fault).__name__]


def test_what_nobody_handles_comes_out(drive: Drive, journal: Journal) -> None:
    def failing() -> None:
        raise ValueError("no")

    def asking() -> Asking:
        yield Call(failing)

    with pytest.raises(ValueError, match="no"):
        drive(journal, asking())


@pytest.mark.parametrize("is_late", [False, True])
def test_a_stop_iteration_comes_out_as_what_was_raised(is_late: bool, journal: Journal) -> None:
    fault = StopIteration("no more")

    def failing() -> None:
        raise fault

    def inner() -> Asking:
        try:
            yield Call(failing)
        except StopIteration:
            if is_late:
                yield message("it failed")
            raise

    def asking() -> Asking:
        yield from inner()

    with pytest.raises(StopIteration) as caught:
        without_a_loop(journal, asking())
    assert caught.value is fault
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        on_the_loop(journal, asking())


def test_an_asking_that_stops_by_itself_is_an_error_of_its_own(journal: Journal) -> None:
    def stops() -> None:
        raise StopIteration

    def asking() -> Asking:
        try:
            yield Call(stops)
        except StopIteration:
            raise StopIteration("another one") from None

    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        without_a_loop(journal, asking())


def test_what_cannot_be_recorded_is_thrown_too(drive: Drive, journal: Journal) -> None:
    def asking() -> Asking:
        yield message(object())

    with pytest.raises(UnsupportedTypeError):
        drive(journal, asking())


def test_who_asks_for_nothing_is_answered_at_once(drive: Drive, journal: Journal) -> None:
    def asking() -> Asking:
        yield from ()
        return 7

    assert drive(journal, asking()) == 7


def test_the_loop_of_the_run_does_the_work_while_the_thread_waits(journal: Journal) -> None:
    seen: list[threading.Thread] = []

    async def where() -> None:
        seen.append(threading.current_thread())

    def asking() -> Asking:
        seen.append(threading.current_thread())
        yield OnLoop(where)

    in_a_thread(journal, asking())
    assert seen[0] is not seen[1] is threading.current_thread()


def test_what_the_loop_does_for_a_thread_ends_with_the_attempt(journal: Journal) -> None:
    """Else it would go on, and record, after the run has given the workflow up."""
    cancelled: list[bool] = []

    async def work() -> None:
        begun_waiting = asyncio.Event()

        async def for_ever() -> None:
            begun_waiting.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        def asking() -> Asking:
            yield OnLoop(for_ever)

        driver = Driver(journal, asyncio.get_running_loop())
        waiting = asyncio.ensure_future(asyncio.to_thread(driver.drive, asking()))
        await asyncio.wait_for(begun_waiting.wait(), PATIENCE_SECONDS)
        driver.end()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, PATIENCE_SECONDS)
        driver.end()

    asyncio.run(work())
    assert cancelled == [True]


def test_nothing_is_begun_for_a_thread_after_the_end(journal: Journal) -> None:
    async def work() -> None:
        driver = Driver(journal, asyncio.get_running_loop())
        driver.end()

        def asking() -> Asking:
            yield OnLoop(asyncio.Event().wait)

        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asyncio.to_thread(driver.drive, asking()), PATIENCE_SECONDS)

    asyncio.run(work())


class Hand:
    """What an agent has in hand, if only to be told of its end."""

    is_over = False

    def end(self) -> None:
        self.is_over = True


def attempt(hand: Hand, answer: Callable[[], Any]) -> Attempt:
    async def start() -> Any:
        return answer()

    return Attempt(hand, answer, start)


def test_an_agent_is_called_where_it_is_asked_for(drive: Drive, journal: Journal) -> None:
    def asking() -> Asking:
        return (yield attempt(Hand(), lambda: 7))

    assert drive(journal, asking()) == 7


def test_what_is_only_noted_is_there_at_once_and_goes_with_the_next_commit(
    drive: Drive, journal: Journal
) -> None:
    def asking() -> Asking:
        answer = yield Note(message(1))
        return answer, list(journal.fields["messages"]), (yield message(2))

    assert drive(journal, asking()) == (None, [1], None)
    assert journal.fields["messages"] == [1, 2]


@pytest.mark.parametrize("need", [message(1), Note(message(1)), Save("late"), attempt(Hand(), lambda: 7)])
def test_nothing_is_begun_or_recorded_in_a_row_that_has_ended(journal: Journal, need: Any) -> None:
    caught: list[BaseException] = []

    def asking() -> Asking:
        try:
            yield need
        except Exception as fault:
            caught.append(fault)

    async def work() -> None:
        driver = RowDriver(journal, asyncio.get_running_loop())
        driver.end()
        with pytest.raises(Abandoned):
            driver.drive(asking())

    asyncio.run(work())
    assert (caught, "messages" in journal.fields, journal.checkpoints) == ([], False, 1)


def test_the_agent_at_work_is_told_when_its_row_ends(journal: Journal) -> None:
    first, second = Hand(), Hand()

    def asking() -> Asking:
        yield attempt(first, lambda: None)
        yield attempt(second, driver.end)
        yield message("late")

    async def work() -> RowDriver:
        return RowDriver(journal, asyncio.get_running_loop())

    driver = asyncio.run(work())
    with pytest.raises(Abandoned):
        driver.drive(asking())
    assert (first.is_over, second.is_over, "messages" in journal.fields) == (False, True, False)
