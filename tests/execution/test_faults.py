"""Errors are told whatever their text does."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import AgentFailedError, Retry, Workflow
from holdfast.execution.context import Context
from holdfast.execution.faults import said, shown
from tests.execution.runs import latest, opened, run, types


class Mute(Exception):
    def __str__(self) -> str:
        raise IndexError("no text")


def test_an_error_is_told_by_its_type_and_its_text() -> None:
    assert shown(ValueError("no")) == "ValueError: no" and said(ValueError("no")) == "no"
    assert shown(Mute()) == "Mute: (its text failed with IndexError)"


@pytest.mark.parametrize("on_failure", ["fail", "skip"])
def test_an_agent_that_fails_by_an_error_without_a_text_fails_as_by_any(on_failure: str) -> None:
    workflow = Workflow("w")

    @workflow.agent(retry=Retry(2, delay_seconds=0), on_failure=on_failure)
    def agent(ctx: Context) -> None:
        raise Mute

    with opened() as service:
        if on_failure == "fail":
            with pytest.raises(AgentFailedError, match="Mute: "):
                run(workflow, service)
        else:
            assert run(workflow, service).value is None
        assert types(service).count("AGENT_FAILED") == 2


def test_a_step_and_a_loop_that_fail_so_are_recorded_as_failed() -> None:
    @holdfast.step
    def one() -> None:
        raise Mute

    with opened() as service:

        @holdfast.durable(service)
        def work() -> None:
            one()

        with pytest.raises(Mute):
            work()
        with pytest.raises(Mute), holdfast.loop(service, "WF-2"):
            raise Mute
        assert latest(service, "work").status == "failed"
        assert types(service, "work").count("AGENT_FAILED") == 1
        [told] = service.events("WF-2", type="RUN_UPDATED")
        assert told.data["error"].startswith("Mute: ")
