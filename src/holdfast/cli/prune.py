"""`holdfast prune`: remove what need not be kept, after showing what that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.asking import is_answered
from holdfast.cli.bars import watched
from holdfast.cli.changing import Change, changes
from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.moments import read_span
from holdfast.cli.opening import find_workflow, reading, writing
from holdfast.cli.output import Output, counted, safe, size_text
from holdfast.domain.errors import CheckpointError, DiskFullError

if TYPE_CHECKING:
    from datetime import timedelta

    from holdfast.application.kit import Kit
    from holdfast.domain.retention import RetentionPolicy

_DAYS = 30
_FULL_HINT = "Free a little on that disk by other means first, 8 MB or so, then prune again."


@dataclass(frozen=True, slots=True)
class _Removed:
    """What goes from one workflow."""

    workflow_id: str
    kept: int
    sequences: tuple[int, ...]
    freed_bytes: int


_NUMBER = click.IntRange(min=0)
_RULES = (
    click.option(
        "--keep-last",
        metavar="N",
        type=_NUMBER,
        default=10,
        show_default=True,
        help="Keep the last N checkpoints of each workflow.",
    ),
    click.option(
        "--keep-days", metavar="N", type=_NUMBER, help="Keep those younger than N days. [default: 30]"
    ),
    click.option(
        "--keep-within", metavar="SPAN", callback=read_span, help="The same by the hour: 36h, 7d or 4w."
    ),
    click.option(
        "--keep-daily", metavar="N", type=_NUMBER, default=0, help="Keep the newest of each of N days."
    ),
    click.option(
        "--keep-weekly", metavar="N", type=_NUMBER, default=0, help="Keep the newest of each of N weeks."
    ),
    click.option("--keep-tagged", is_flag=True, help="Keep those that have a label."),
    click.option(
        "--max-per-phase",
        metavar="N",
        type=click.IntRange(min=1),
        help="Of what these keep, at most N of each phase.",
    ),
    click.option(
        "--max-bytes", metavar="N", type=_NUMBER, help="Of what these keep, the newest N bytes of records."
    ),
)


def _rules(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the rules of what is kept."""
    for option in reversed(_RULES):
        command = option(command)
    return command


@click.command("prune", cls=StoreCommand)
@click.argument("workflows", metavar="[WORKFLOW]...", nargs=-1)
@_rules
@changes()
def command(call: Call, workflows: tuple[str, ...], change: Change, **rules: Any) -> None:
    """Remove checkpoints that need not be kept.

    Of each workflow (all of them without WORKFLOW) the last few, the young
    and the pinned stay, at least two in any case, and everything that those
    which stay are restored from.

    \b
    Example:
      holdfast prune WF-2026-001 --keep-last 20 --keep-days 7 --dry-run
    """
    policy = _policy(**rules)
    with reading(call) as kit:
        chosen = [find_workflow(kit, name) for name in workflows] or sorted(kit.store.workflows())
        planning = watched(call.output, chosen, "plan", what=str)
        plan = [_planned(kit, workflow_id, policy) for workflow_id in planning]
    going = [one for one in plan if one.sequences]
    if change.dry_run or not going:
        _print(call.output, plan, done=False)
        return
    _confirm(call.output, going, change)
    _carry_out(call, going, policy, change)


def _policy(
    *, keep_last: int, keep_days: int | None, keep_within: timedelta | None, **rules: Any
) -> RetentionPolicy:
    """Make the rules; the age is given in one way."""
    from holdfast.domain.retention import RetentionPolicy

    if keep_days is not None and keep_within is not None:
        raise click.UsageError("--keep-days and --keep-within say the same: give one of them")
    if keep_within is not None:
        return RetentionPolicy(keep_last, 0, keep_within_seconds=keep_within.total_seconds(), **rules)
    return RetentionPolicy(keep_last, _DAYS if keep_days is None else keep_days, **rules)


def _planned(kit: Kit, workflow_id: str, policy: RetentionPolicy) -> _Removed:
    from holdfast.application.resolve import living
    from holdfast.application.retain import plan_prune

    plan = plan_prune(kit, workflow_id, policy)
    going = set(plan.removal.sequences)
    kept = sum(1 for entry in living(kit.store, workflow_id) if entry.sequence not in going)
    return _Removed(workflow_id, kept, plan.removal.sequences, plan.freed_bytes)


def _carry_out(call: Call, going: list[_Removed], policy: RetentionPolicy, change: Change) -> None:
    """Prune one workflow after the other; one that fails does not keep the others from it."""
    done: list[_Removed] = []
    failed: list[tuple[str, CheckpointError]] = []
    for planned in watched(call.output, going, "prune", what=lambda one: one.workflow_id):
        try:
            done.append(_carried_out(call, planned, policy, change))
        except CheckpointError as error:
            failed.append((planned.workflow_id, error))
    if not done:
        raise failed[0][1]
    _print(call.output, _counted(call, done), done=True, failed=failed)
    if failed:
        raise click.exceptions.Exit(Exit.PARTIAL)


def _carried_out(call: Call, planned: _Removed, policy: RetentionPolicy, change: Change) -> _Removed:
    name = planned.workflow_id
    try:
        with writing(call, reason=change.reason, workflow_id=name) as service:
            if change.yes:
                result = service.prune_checkpoints(name, policy=policy)
            else:
                # Somebody said yes to just these; a program may have committed since.
                result = service.recording.prune_shown(name, policy, planned.sequences)
    except DiskFullError as full:
        # Elsewhere one is told to prune.
        raise DiskFullError(full.message, place=full.place, hint=_FULL_HINT) from full
    return _Removed(name, planned.kept, result.removed, result.freed_bytes)


def _counted(call: Call, done: list[_Removed]) -> list[_Removed]:
    """Count what is kept as it stands now: programs go on writing while others prune."""
    from holdfast.application.resolve import living

    with reading(call) as kit:
        return [replace(one, kept=sum(1 for _ in living(kit.store, one.workflow_id))) for one in done]


def _confirm(output: Output, going: list[_Removed], change: Change) -> None:
    """Ask a person at a terminal, who is shown first what goes; anyone else has to say --yes."""
    count = counted(sum(len(one.sequences) for one in going), "checkpoint")
    if not change.yes and is_answered(output):
        _print(output, going, done=False)
    change.confirm(output, f"Remove {count} of {counted(len(going), 'workflow')} for good?")


def _print(
    output: Output,
    removed: list[_Removed],
    *,
    done: bool,
    failed: Sequence[tuple[str, CheckpointError]] = (),
) -> None:
    if output.as_json:
        problems = [
            {"workflow_id": name, "code": error.code, "message": str(error)} for name, error in failed
        ]
        fields = {"dry_run": not done, "workflows": [_fields(one) for one in removed], "failed": problems}
        output.data({**fields, **_totals(removed)})
        return
    for name, error in failed:
        output.note(f"failed: {safe(name)}: {safe(error)}")
    shown = [one for one in removed if one.sequences]
    if not shown:
        output.note(f"Nothing to remove from {counted(len(removed), 'workflow')}.")
        return
    rows = [
        (
            one.workflow_id,
            f"{one.kept:,}",
            f"{len(one.sequences):,}",
            size_text(one.freed_bytes),
            _ranges(one.sequences),
        )
        for one in shown
    ]
    output.table(("WORKFLOW", "KEPT", "REMOVED", "FREED", "WHICH"), rows, right=" rrr")
    if not done:
        output.note("Nothing was changed. --yes removes them.")


def _fields(one: _Removed) -> dict[str, Any]:
    return {
        "workflow_id": one.workflow_id,
        "kept": one.kept,
        "removed": list(one.sequences),
        "freed_bytes": one.freed_bytes,
    }


def _totals(removed: list[_Removed]) -> dict[str, int]:
    return {
        "removed": sum(len(one.sequences) for one in removed),
        "freed_bytes": sum(one.freed_bytes for one in removed),
    }


def _ranges(sequences: tuple[int, ...]) -> str:
    """Write ascending numbers as ranges: `1-4, 7`."""
    ranges: list[list[int]] = []
    for number in sequences:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
