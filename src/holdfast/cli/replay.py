"""`holdfast replay`: the reducers run again, and compared with what is stored."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.bars import Show, bar
from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.moments import read_point
from holdfast.cli.opening import entry_of, find_workflow, reading, tell
from holdfast.cli.output import Output, counted, safe
from holdfast.cli.points import app_named, app_option, skipped_fields, travel_in
from holdfast.cli.values import short_json
from holdfast.domain.audit_type import AuditType
from holdfast.domain.plainjson import as_json_tree
from holdfast.domain.pointer import pointer_text
from holdfast.domain.tree import NOTHING

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.travel.explaining import Discrepancy, Kind
    from holdfast.application.travel.replaying import ReplayedStep, ReplayReport

_VALUE_WIDTH = 48
#: In full: fewer digits could be a sequence.
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@click.command("replay", cls=StoreCommand)
@click.argument("workflow", metavar="WORKFLOW")
@click.option(
    "--from",
    "start",
    metavar="POINT",
    callback=read_point,
    help="Where to begin. [default: the oldest kept checkpoint]",
)
@click.option(
    "--to", "end", metavar="POINT", callback=read_point, help="Where to end. [default: the last event]"
)
@click.option("--all", "show_all", is_flag=True, help="Show every difference, not just divergences.")
@click.option("--strict", is_flag=True, help="Take events that were left out for divergences.")
@click.option("--until-divergence", is_flag=True, help="Stop at the first divergence.")
@app_option
def command(
    call: Call,
    workflow: str,
    start: str | None,
    end: str | None,
    show_all: bool,
    strict: bool,
    until_divergence: bool,
    app: str | None,
) -> None:
    """Run the reducers again and compare with what is stored.

    From each checkpoint to the next the events are replayed, and what comes out
    is compared with the stored state. Differences are put down to the caller,
    who changed its state without an event (unexplained) or keeps no account of
    an event (left out), or are a divergence: an event says one thing and the
    stored state another. Ends with 6 if there is one.
    A POINT is 42, event:41, time:2026-01-11T14:30:00Z or the UUID of a checkpoint.

    \b
    Example:
      holdfast replay WF-2026-001 --to event:41
    """
    from holdfast.application.travel.replaying import Replaying

    with reading(call, app=app_named(app)) as kit:
        find_workflow(kit, workflow)
        ends = _whole_name(workflow, start), _whole_name(workflow, end)
        with bar(call.output, "replay") as show:
            seen = _Seen(
                show, kit.store.head(workflow).event_seq, _bad(strict=strict) if until_divergence else ()
            )
            report = Replaying(kit, travel_in(kit)).check(workflow, *ends, goes_on=seen)
        _tell(call, kit, report)
    if call.output.as_json:
        call.output.data(report_fields(report))
    else:
        _print(call.output, report, show_all=show_all, strict=strict)
    _leave(report, strict=strict)


class _Seen:
    """Shows how far a replay has come, and stops it where it found what is looked for."""

    def __init__(self, show: Show, events: int, bad: Collection[Kind]) -> None:
        self._show = show
        self._events = events
        self._bad = bad
        self._done = 0

    def __call__(self, step: ReplayedStep) -> bool:
        self._done += step.events
        self._show(self._done, self._events, step.end)
        return not any(found.kind in self._bad for found in step.discrepancies)


def _bad(*, strict: bool) -> Collection[Kind]:
    """Answer the kinds of differences that are divergences."""
    from holdfast.application.travel.explaining import Kind

    return {Kind.DIVERGED, Kind.LEFT_OUT} if strict else {Kind.DIVERGED}


def _whole_name(workflow: str, point: str | None) -> str | None:
    """Put the workflow before a point that is written without it, unless that is the UUID of a checkpoint."""
    if point is None or point.startswith(f"{workflow}@") or _UUID.fullmatch(point):
        return point
    return f"{workflow}@{point}" if "@" not in point else point


def _tell(call: Call, kit: Kit, report: ReplayReport) -> None:
    """Tell in the trail that somebody looked at states and events."""
    tell(call, kit, [entry_of(kit, AuditType.STATE_READ, report.workflow_id, report.facts)])


def _leave(report: ReplayReport, *, strict: bool) -> None:
    from holdfast.domain.replay import ERASED_REASON

    if any(report.count(kind) for kind in _bad(strict=strict)):
        raise click.exceptions.Exit(Exit.DIVERGED)
    # What was erased cannot be replayed, and nobody expects it to be.
    if report.problems or any(event.reason != ERASED_REASON for event in report.skipped):
        raise click.exceptions.Exit(Exit.PARTIAL)


def _print(output: Output, report: ReplayReport, *, show_all: bool, strict: bool) -> None:
    bad = _bad(strict=strict)
    for step in report.steps:
        lines = [_difference_line(output, one) for one in step.discrepancies if show_all or one.kind in bad]
        if lines or step.skipped or step.problem or show_all:
            output.line(_step_line(output, step))
            output.lines(lines)
        output.lines(
            f"  skipped event {one.seq} ({safe(one.type)}): {safe(one.reason)}" for one in step.skipped
        )
    output.line(_summary(output, report, strict=strict))


def _step_line(output: Output, step: ReplayedStep) -> str:
    told = f"{counted(step.events, 'event')}, {step.replayed} replayed"
    if step.problem:
        told = output.paint(f"cannot be compared: {safe(step.problem)}", "bad")
    return f"{output.bold(f'{safe(step.start)} -> {safe(step.end)}')}: {told}"


def _difference_line(output: Output, one: Discrepancy) -> str:
    from holdfast.application.travel.explaining import Kind
    from holdfast.domain.delta import show_path

    where, stored = safe(show_path(one.path)), _shown(one.stored)
    if one.kind is Kind.DIVERGED:
        said = f"event {one.event_seq} gives {_shown(one.replayed)}, stored is {stored}"
        return output.paint(f"  diverged     {where}: {said}", "bad")
    if one.kind is Kind.LEFT_OUT:
        gives = "removes it" if one.replayed is NOTHING else f"gives {_shown(one.replayed)}"
        return f"  left out     {where}: event {one.event_seq} {gives}, the stored state does not say so"
    return f"  unexplained  {where} = {stored}, was {_shown(one.replayed)}"


def _summary(output: Output, report: ReplayReport, *, strict: bool) -> str:
    from holdfast.application.travel.explaining import Kind

    counts = {kind: report.count(kind) for kind in Kind}
    diverged = counts[Kind.DIVERGED]
    refused = output.paint(", refused by --strict", "bad") if strict and counts[Kind.LEFT_OUT] else ""
    verdict = output.paint(counted(diverged, "divergence"), "bad") if diverged else "no divergence"
    parts = [
        f"{safe(report.start)} -> {safe(report.end)}: {counted(report.events, 'event')}, "
        f"{report.replayed} replayed",
        verdict,
        f"{counted(counts[Kind.UNEXPLAINED], 'change')} that no event explains",
        f"{counts[Kind.LEFT_OUT]} left out{refused}",
    ]
    return "; ".join(parts)


def _shown(value: Any) -> str:
    return "nothing" if value is NOTHING else safe(short_json(value, _VALUE_WIDTH))


def report_fields(report: ReplayReport) -> dict[str, Any]:
    """Answer a report for programs."""
    from holdfast.application.travel.explaining import Kind

    return {
        "workflow_id": report.workflow_id,
        "from": report.start,
        "to": report.end,
        "events": report.events,
        "replayed": report.replayed,
        **{kind.value: report.count(kind) for kind in Kind},
        "steps": [_step_fields(step) for step in report.steps],
    }


def _step_fields(step: ReplayedStep) -> dict[str, Any]:
    return {
        "from": step.start,
        "to": step.end,
        "events": step.events,
        "replayed": step.replayed,
        "problem": step.problem or None,
        "skipped": [skipped_fields(event) for event in step.skipped],
        "differences": [_difference_fields(one) for one in step.discrepancies],
    }


def _difference_fields(one: Discrepancy) -> dict[str, Any]:
    """Answer one difference; a value that is not there is left out."""
    values = {"before": one.before, "replayed": one.replayed, "stored": one.stored}
    return {
        "kind": one.kind.value,
        "path": pointer_text(one.path),
        "event_seq": one.event_seq,
        **{name: as_json_tree(value) for name, value in values.items() if value is not NOTHING},
    }
