"""Bringing the end of foreign work to a loop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from holdfast.execution.engines.landing import Landing


def landed(outcome: Any) -> Any:
    async def wait() -> Any:
        landing = Landing(lambda: None)
        threading.Thread(target=landing.settle, args=(outcome,)).start()
        return await landing.future

    return asyncio.run(wait())


def test_an_answer_lands() -> None:
    assert landed(lambda: 7) == 7


def test_a_fault_lands() -> None:
    with pytest.raises(ZeroDivisionError):
        landed(lambda: 1 // 0)


def test_cancelling_is_told_once_and_what_comes_later_is_left() -> None:
    told = []

    async def cancel() -> None:
        landing = Landing(lambda: told.append(1))
        landing.future.cancel()
        await asyncio.wait({landing.future})
        landing.settle(lambda: 7)
        await asyncio.sleep(0)

    asyncio.run(cancel())
    assert told == [1]


def test_a_loop_that_is_closed_is_no_problem() -> None:
    async def begin() -> Landing:
        return Landing(lambda: None)

    asyncio.run(begin()).settle(lambda: 7)
