from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import click
import pytest

from holdfast import RunOptions, Workflow
from holdfast.cli.exits import Exit, exit_of
from holdfast.cli.group import Call
from holdfast.cli.output import Output
from holdfast.cli.run_carrying import Ended, Order
from holdfast.cli.run_summary import Summary, conclude, lines_of, summary_of
from holdfast.cli.run_tally import Tally
from holdfast.domain.errors import AgentFailedError, CheckpointWriteError, ResultLostError
from holdfast.domain.unwritten import Unwritten
from holdfast.execution.outcome import RunResult, RunStatus


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def ended_with(result: RunResult | None = None, *, events: bool = False, **more: Any) -> Ended:
    def start(service: Any, options: RunOptions) -> Any:
        raise AssertionError("it ended already")

    order = Order("flows.py:my team", Workflow("team"), "W", start, RunOptions(), events=events)
    return Ended(order, Tally(), result, **more)


def test_everything_is_told_of_a_run() -> None:
    summary = Summary(
        workflow_id="W\x07",
        program="flows:team",
        status="waiting",
        resumed=True,
        seconds=75.0,
        ran=1_200,
        kept=3,
        checkpoints=2,
        last_checkpoint="W@2",
        metrics={"tokens": 12_840, "calls": 7, "cost_usd": 0.09312, "elapsed_seconds": 80},
        confidence=None,
        waiting=("ask[a b]: take",),
        warnings=("agent 'x' is new\x1b",),
        value={"a": 1},
        outputs=["one"],
        progress_report="progress/W.md",
        resume="holdfast resume W --app flows:team",
    )
    assert [click.unstyle(line) for line in lines_of(summary, Output())] == [
        "W\\x07 waiting in 1 min 15 s",
        "  agents       1,200 run, 3 kept",
        "  tokens       12,840",
        "  calls        7",
        "  cost         0.0931 USD",
        "  checkpoints  2, the last is W@2",
        "  waiting for  take of ask[a b]: `holdfast approve 'W\\x07' take --step 'ask[a b]'`",
        "  warning      agent 'x' is new\\x1b",
        "  outputs      1 output",
        '  value        {"a":1}',
        "  report       progress/W.md",
        "  go on with   `holdfast resume W --app flows:team`",
    ]


@pytest.mark.parametrize(
    ("status", "leave"),
    [
        (RunStatus.WAITING, Exit.WAITING),
        (RunStatus.PAUSED, Exit.PAUSED),
        (RunStatus.CANCELLED, Exit.CANCELLED),
        (RunStatus.STOPPED, Exit.TERMINATED),
        (RunStatus.FAILED, Exit.RUN_FAILED),
    ],
)
def test_each_way_to_end_has_its_exit_code(status: RunStatus, leave: Exit) -> None:
    with pytest.raises(click.exceptions.Exit) as left:
        conclude(Call(), ended_with(RunResult("W", status)))
    assert left.value.exit_code == leave


def test_a_run_that_completed_ends_well() -> None:
    conclude(Call(), ended_with(RunResult("W", RunStatus.COMPLETED)))


def test_a_signal_has_its_own_code() -> None:
    for number, leave in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        ended = ended_with(signal=number)
        ended.tally.told("run_ended", {"status": "stopped", "seconds": 1.0})
        with pytest.raises(click.exceptions.Exit) as left:
            conclude(Call(), ended)
        assert left.value.exit_code == leave


def test_what_it_failed_with_is_raised_after_it_was_told(capsys: pytest.CaptureFixture[str]) -> None:
    fault = AgentFailedError("no fuel", place="W only")
    with pytest.raises(AgentFailedError):
        conclude(Call(output=Output(as_json=True)), ended_with(fault=fault))
    assert json.loads(capsys.readouterr().out)["status"] == "failed"


def test_values_that_json_has_no_words_for_are_tagged(capsys: pytest.CaptureFixture[str]) -> None:
    result = RunResult("W", RunStatus.COMPLETED, value=(1, b"x"))
    conclude(Call(output=Output(as_json=True)), ended_with(result, events=True))
    [line] = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["message_type"], told["value"]["$hf"]) == ("result", "tuple")


def test_what_goes_on_with_a_run_can_be_typed() -> None:
    waiting = RunResult("W", RunStatus.WAITING)
    assert summary_of(Call(), ended_with(waiting)).resume == "holdfast resume W --app 'flows.py:my team'"
    far = Call("file://ada:secret@host/db")
    told = summary_of(far, ended_with(waiting)).resume
    assert told is not None and told.endswith("--store 'file://***@host/db'")
    assert summary_of(Call(), ended_with(RunResult("W", RunStatus.CANCELLED))).resume is None


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.WAITING])
def test_a_run_that_the_store_does_not_have_all_of_ends_with_an_error(
    status: RunStatus, is_lost: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    left = Unwritten(2, "full", None if is_lost else "file:/second", is_lost)
    ended = ended_with(RunResult("W", status).with_unwritten(left), unwritten=left)
    with pytest.raises(CheckpointWriteError, match="2 commits are not in the store") as told:
        conclude(Call(), ended)
    assert exit_of(told.value.code) == 1 and isinstance(told.value, ResultLostError) is is_lost
    out = capsys.readouterr().out
    assert left.message in out and "go on with" in out


def test_a_signal_comes_before_what_was_not_written() -> None:
    ended = ended_with(signal=signal.SIGINT, unwritten=Unwritten(1, "full"))
    ended.tally.told("run_ended", {"status": "stopped", "seconds": 1.0})
    with pytest.raises(click.exceptions.Exit) as left:
        conclude(Call(), ended)
    assert left.value.exit_code == 130
    assert summary_of(Call(), ended).warnings == (Unwritten(1, "full").text,)
