"""The end of a run, told to people and to programs, and as an exit code."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.exits import Exit
from holdfast.cli.opening import reading
from holdfast.cli.output import Output, counted, json_line, safe
from holdfast.cli.run_progress import seconds_text
from holdfast.cli.run_standing import report_path, standing
from holdfast.cli.values import short_json
from holdfast.domain.errors import CheckpointError, CheckpointWriteError, ResultLostError
from holdfast.domain.plainjson import as_json_tree

if TYPE_CHECKING:
    from holdfast.cli.group import Call
    from holdfast.cli.run_carrying import Ended

_LABEL_COLUMNS = 12
_VALUE_COLUMNS = 90
_MEANING = {"completed": "good", "failed": "bad", "cancelled": "bad"}
_FINAL = frozenset({"completed", "cancelled"})
_EXITS = {
    "completed": Exit.DONE,
    "failed": Exit.RUN_FAILED,
    "waiting": Exit.WAITING,
    "paused": Exit.PAUSED,
    "cancelled": Exit.CANCELLED,
    "stopped": Exit.TERMINATED,
}


@dataclass(frozen=True, slots=True)
class Summary:
    """What is told of a run that ended."""

    workflow_id: str
    program: str
    status: str
    resumed: bool
    seconds: float
    ran: int
    kept: int
    checkpoints: int
    last_checkpoint: str | None
    metrics: Mapping[str, Any]
    confidence: Any
    waiting: tuple[str, ...]
    warnings: tuple[str, ...]
    value: Any
    outputs: Any
    progress_report: str | None
    resume: str | None


def conclude(call: Call, ended: Ended) -> None:
    """Print how a run ended, and end with what a script has to know.

    Raises:
        CheckpointError: what the run failed with, or that the store does not have all of it.
    """
    summary = summary_of(call, ended)
    if call.output.as_json:
        fields = {name: getattr(summary, name) for name in Summary.__dataclass_fields__}
        _print_json(call.output, fields, one_line=ended.order.events)
    else:
        call.output.lines(lines_of(summary, call.output))
    if ended.fault is not None:
        raise ended.fault
    if ended.unwritten.commits and ended.signal is None:
        raise _not_written(ended)
    leave = _exit_of(summary.status, ended.signal)
    if leave is not Exit.DONE:
        raise click.exceptions.Exit(leave)


def _not_written(ended: Ended) -> CheckpointWriteError:
    """Say that a run came to its end, and that not all of it is in the store."""
    told = ended.unwritten
    kind = ResultLostError if told.is_lost else CheckpointWriteError
    return kind(told.message, place=ended.order.workflow_id, hint=told.hint)


def _print_json(output: Output, fields: dict[str, Any], *, one_line: bool) -> None:
    tree = as_json_tree(fields)
    if one_line:
        click.echo(json_line({"message_type": "result", **tree}))
    else:
        output.data(tree)


def _exit_of(status: str, number: int | None) -> Exit:
    return Exit.INTERRUPTED if number == signal.SIGINT else _EXITS[status]


def summary_of(call: Call, ended: Ended) -> Summary:
    """Put together what is known of a run that ended."""
    from holdfast.domain.plain import to_plain

    order, tally, result = ended.order, ended.tally, ended.result
    fields = (standing(call, order.workflow_id, app=order.app) or {}) if result is None else {}
    plain = to_plain(
        {
            "metrics": dict(result.metrics if result else fields.get("metrics", {})),
            "confidence": result.confidence if result else fields.get("confidence"),
            "value": result.value if result else None,
            "outputs": result.outputs if result else fields.get("outputs", []),
        },
        order.types,
    )
    told = (ended.unwritten.text,) if ended.unwritten.commits else ()
    # What waited to the end is in no store, and nobody can name it to a command.
    checkpoints, last = tally.made(in_store=bool(ended.unwritten.commits))
    here = sum(row.done for row in tally.rows.values())
    return Summary(
        workflow_id=order.workflow_id,
        program=order.program,
        status=ended.status,
        resumed=result.resumed if result else tally.is_resumed,
        seconds=round(result.seconds if result else tally.seconds, 6),
        ran=result.ran if result else tally.ran,
        kept=result.kept if result else max(len(fields.get("tasks", ())) - here, 0),
        checkpoints=checkpoints,
        last_checkpoint=last or None,
        waiting=result.waiting if result else (),
        warnings=result.warnings if result else (*tally.warnings, *told),
        progress_report=_report_of(call, order.workflow_id),
        resume=_resume_command(call, ended),
        **plain,
    )


def _report_of(call: Call, workflow_id: str) -> str | None:
    """Tell where the progress report lies, if there is one."""
    # A store that is in memory only, or has just become unreadable, is no reason to fail now.
    with suppress(CheckpointError), reading(call) as kit:
        return report_path(kit, workflow_id)
    return None


def _resume_command(call: Call, ended: Ended) -> str | None:
    """Write what goes on with a run; None if nothing is left to do."""
    from holdfast.config import without_secrets

    if ended.status in _FINAL and ended.is_durable:
        return None
    words = ["holdfast", "resume", ended.order.workflow_id, "--app", ended.order.program]
    return shlex.join([*words, "--store", without_secrets(call.store)] if call.store else words)


def lines_of(summary: Summary, output: Output) -> list[str]:
    """Tell people how a run ended."""
    status = output.paint(summary.status, _MEANING.get(summary.status, "warn"))
    # A run that a waiting request ends at once has recorded that.
    has_done = summary.ran or summary.checkpoints
    was_over = summary.resumed and not has_done and summary.status in _FINAL
    how = "before; nothing was run" if was_over else f"in {seconds_text(summary.seconds)}"
    body = [f"  {label:<{_LABEL_COLUMNS}} {text}" for label, text in _particulars(summary)]
    return [f"{safe(summary.workflow_id)} {status} {how}", *body]


def _particulars(summary: Summary) -> Iterator[tuple[str, str]]:
    kept = f", {summary.kept:,} kept" if summary.kept else ""
    yield "agents", f"{summary.ran:,} run{kept}"
    yield from _used(summary.metrics)
    last = f", the last is {safe(summary.last_checkpoint)}" if summary.last_checkpoint else ""
    yield "checkpoints", f"{summary.checkpoints:,}{last}"
    for question in summary.waiting:
        step_id, _, name = question.partition(": ")
        answer = shlex.join(["holdfast", "approve", summary.workflow_id, name, "--step", step_id])
        yield "waiting for", f"{safe(name)} of {safe(step_id)}: `{safe(answer)}`"
    for warning in summary.warnings:
        yield "warning", safe(warning)
    if summary.outputs:
        yield "outputs", counted(len(summary.outputs), "output")
    if summary.value is not None:
        yield "value", safe(short_json(summary.value, _VALUE_COLUMNS))
    if summary.progress_report:
        yield "report", safe(summary.progress_report)
    if summary.resume:
        yield "go on with", f"`{safe(summary.resume)}`"


def _used(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Tell what a run used up, all its earlier stretches included."""
    for name, label, form in (("tokens", "tokens", ",.0f"), ("calls", "calls", ",.0f")):
        if isinstance(metrics.get(name), int | float):
            yield label, format(metrics[name], form)
    if isinstance(metrics.get("cost_usd"), int | float):
        yield "cost", f"{metrics['cost_usd']:,.4f} USD"
