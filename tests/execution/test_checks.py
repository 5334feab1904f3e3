"""What an agent says wrongly is refused in words of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from holdfast import AgentFailedError
from holdfast.execution.context import Context
from tests.execution.runs import chain, opened, run


@pytest.mark.parametrize(
    ("say", "told"),
    [
        (lambda ctx: ctx.confidence("x"), "'x' is no confidence"),
        (lambda ctx: ctx.confidence(7), "7 is no confidence"),
        (lambda ctx: ctx.progress("half"), "'half' is no progress"),
        (lambda ctx: ctx.progress(7), "7 is no progress"),
        (lambda ctx: ctx.spawn("x"), "'x' is no function"),
        (lambda ctx: ctx.speculate("x"), "'x' is no function"),
        (lambda ctx: ctx.effect("e", print, unknown="maybe"), "'maybe' is no policy"),
    ],
)
def test_what_is_said_wrongly_is_told(say: Callable[[Any], Any], told: str) -> None:
    def agent(ctx: Context) -> None:
        say(ctx)

    with opened() as service, pytest.raises(AgentFailedError, match=f"InvalidStateError: {told}"):
        run(chain(agent), service)
