"""Functions of a program are called apart, coroutines too, and not waited for without end."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import pytest

from holdfast.application.recovery import calling
from holdfast.application.recovery.calling import OverdueError, call

PATIENT_SECONDS = 60.0
SHORT_SECONDS = 0.02

_WORD: ContextVar[str] = ContextVar("word", default="")


def test_a_function_answers() -> None:
    assert call(lambda a, b: a + b, 1, 2, timeout_seconds=PATIENT_SECONDS) == 3


def test_a_coroutine_answers() -> None:
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    assert call(add, 1, 2, timeout_seconds=PATIENT_SECONDS) == 3


def test_a_coroutine_answers_also_where_a_loop_runs_already() -> None:
    async def one() -> int:
        return 1

    async def main() -> int:
        answer: int = call(one, timeout_seconds=PATIENT_SECONDS)
        return answer

    assert asyncio.run(main()) == 1


@pytest.mark.parametrize("kind", [ValueError, TimeoutError, KeyboardInterrupt])
def test_what_is_raised_comes_back_as_it_is(kind: type[BaseException]) -> None:
    problem = kind("it went wrong")

    def fail() -> None:
        raise problem

    async def fail_later() -> None:
        raise problem

    for function in (fail, fail_later):
        if function is fail_later and kind is KeyboardInterrupt:
            continue
        with pytest.raises(kind) as caught:
            call(function, timeout_seconds=PATIENT_SECONDS)
        assert caught.value is problem


def test_a_function_that_takes_too_long_is_left_behind() -> None:
    gate, ended = threading.Event(), threading.Event()

    def wait() -> None:
        gate.wait()
        ended.set()

    with pytest.raises(OverdueError, match=r"longer than 0\.02 seconds"):
        call(wait, timeout_seconds=SHORT_SECONDS)
    assert not ended.is_set()
    gate.set()
    ended.wait(PATIENT_SECONDS)


def test_a_coroutine_that_takes_too_long_is_cancelled_and_may_clean_up() -> None:
    cleaned: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("cleaned")

    with pytest.raises(OverdueError):
        call(wait, timeout_seconds=SHORT_SECONDS)
    assert cleaned == ["cleaned"]


def test_a_coroutine_whose_thread_begins_late_is_not_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    cleaned: list[str] = []
    carry_out = calling._Running.carry_out

    def late(running: Any, *arguments: Any) -> None:
        with suppress(TimeoutError):
            running._outcome.result(5 * SHORT_SECONDS)
        carry_out(running, *arguments)

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("cleaned")

    monkeypatch.setattr(calling._Running, "carry_out", late)
    with pytest.raises(OverdueError):
        call(wait, timeout_seconds=SHORT_SECONDS)
    assert cleaned == ["cleaned"]


def test_it_runs_in_a_thread_of_its_own_with_the_callers_context() -> None:
    _WORD.set("hello")
    here = threading.get_ident()
    word, there = call(lambda: (_WORD.get(), threading.get_ident()), timeout_seconds=PATIENT_SECONDS)
    assert word == "hello"
    assert there != here
