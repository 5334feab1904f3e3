"""Errors are told whatever their text does."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import holdfast
from holdfast import AgentFailedError, Retry, Workflow
from holdfast.execution.context import Context
from holdfast.execution.faults import said, shown
from tests.execution.runs import chain, latest, opened, run, types


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


#: Of a known form as a whole, and of none once it is cut.
TOKEN = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"


def _fail_agent(url: str, fault: Exception) -> None:
    def agent(ctx: Context) -> None:
        raise fault

    chain(agent).run_sync(url, "WF-1")


def _fail_effect(url: str, fault: Exception) -> None:
    def post(key: str) -> None:
        raise fault

    def agent(ctx: Context) -> None:
        with suppress(ValueError):
            ctx.effect("post", post)

    chain(agent).run_sync(url, "WF-1")


def _fail_durable(url: str, fault: Exception) -> None:
    @holdfast.step
    def step() -> None:
        raise fault

    @holdfast.durable(url)
    def function() -> None:
        step()

    function()


def _fail_loop(url: str, fault: Exception) -> None:
    with holdfast.loop(url, "loop"):
        raise fault


@pytest.mark.parametrize("way", [_fail_agent, _fail_effect, _fail_durable, _fail_loop])
@pytest.mark.parametrize("kept", [300, 2_000, 4_000, 20_000])
def test_a_text_is_not_cut_in_the_middle_of_a_secret(
    way: Callable[[str, Exception], None], kept: int, tmp_path: Path
) -> None:
    # So many letters of it are before the end of what is kept: with the type of the error, and without.
    before = "." * (kept - len("ValueError: ") - 16)
    with suppress(ValueError, AgentFailedError):
        way(f"{tmp_path}/store", ValueError(f"{before}{TOKEN} {TOKEN}{'.' * (kept - len(TOKEN) + 4)}"))
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not [data for data in stored if TOKEN[4:14].encode() in data or TOKEN[-10:].encode() in data]
    assert any(b"ValueError" in data for data in stored)
