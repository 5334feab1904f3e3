"""`holdfast migrate`: bring the newest state of each workflow to a version that the program knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.bars import watched
from holdfast.cli.changing import Change, changes
from holdfast.cli.exits import Exit, exit_of
from holdfast.cli.export import check_place, write_archive
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import find_workflow, reading, writing
from holdfast.cli.output import Output, counted, safe
from holdfast.cli.points import app_named

if TYPE_CHECKING:
    from holdfast.application.app import App
    from holdfast.application.upgrading import Upgrade
    from holdfast.ports import Store


@click.command("migrate", cls=StoreCommand)
@click.argument("workflows", metavar="[WORKFLOW]...", nargs=-1)
@click.option("--apply", "is_applied", is_flag=True, help="Record the migrated states.")
@click.option("--app", metavar="MODULE:OBJECT", help="The program that knows the migrations.")
@click.option("--to", "target", metavar="VERSION", help="Go to this version, and not to the program's own.")
@click.option("--backup", metavar="FILE", help="Write the workflows into this new archive first.")
@changes()
def command(
    call: Call,
    workflows: tuple[str, ...],
    is_applied: bool,
    app: str | None,
    target: str | None,
    backup: str | None,
    change: Change,
) -> None:
    """Bring states to the version of the program.

    The newest state of each workflow (all of them without WORKFLOW) goes
    through the migrations of the app, and becomes a new checkpoint; what is
    stored stays as it is. Without this, states are migrated each time they
    are read. What --backup writes, `holdfast import archive` takes in.

    \b
    Example:
      holdfast migrate --dry-run --app myproject.flows:app
    """
    if change.dry_run == is_applied:
        raise click.UsageError("give either --dry-run or --apply")
    program = _at_version(app_named(app), target)
    if backup is not None:
        check_place(backup)
    with reading(call, app=program) as kit:
        chosen = [find_workflow(kit, name) for name in workflows] or _with_checkpoints(kit.store)
        if change.dry_run:
            from holdfast.application.reading import Reader
            from holdfast.application.upgrading import plan_upgrade

            done = _gathered(call.output, plan_upgrade(kit, Reader(kit), chosen), len(chosen))
        elif backup is not None:
            write_archive(call, kit, chosen, backup, with_trail=not workflows, change=change)
            call.output.note(f"What is there now is kept in {safe(backup)}.")
    if is_applied:
        with writing(call, app=program, reason=change.reason) as service:
            done = _gathered(call.output, service.upgrades.apply(chosen), len(chosen))
    if program is None and target is None:
        call.output.note("No app was named, so the version is 1.0.0; --app names one that knows others.")
    _finish(call.output, done, backup, is_dry=change.dry_run)


def _at_version(program: App | None, target: str | None) -> App | None:
    """Answer the program as it was at a version, or as it is.

    Raises:
        ConfigError: that is no version.
        UnsupportedVersionError: the program does not know it yet.
    """
    if target is None:
        return program
    from copy import copy

    from holdfast.application.app import App as Program
    from holdfast.domain.errors import UnsupportedVersionError
    from holdfast.domain.migration import check_version, is_newer

    then = copy(program or Program())
    if is_newer(check_version(target), then.schema_version):
        raise UnsupportedVersionError(
            f"the program knows versions up to {then.schema_version}",
            place=f"--to {target}",
            hint="Name a program that knows that version with --app.",
        )
    then.schema_version = target
    return then


def _with_checkpoints(store: Store) -> list[str]:
    """Name the workflows that have a state; an erased one has tombstones, and counts on from them."""
    from holdfast.application.resolve import living

    return sorted(name for name in store.workflows() if next(living(store, name), None) is not None)


def _gathered(output: Output, going: Iterator[Upgrade], count: int) -> list[Upgrade]:
    """Take the answers one by one, with a bar on a terminal."""
    return list(watched(output, going, "migrate", total=count, what=lambda one: one.workflow_id))


def _finish(output: Output, done: list[Upgrade], backup: str | None, *, is_dry: bool) -> None:
    """Print the result; end with why it failed if nothing went right, else with 3 if something failed."""
    errors = [one.error for one in done if one.error is not None]
    if errors and len(errors) == len(done) == 1:
        raise errors[0]
    if output.as_json:
        output.data({**_fields(done, is_dry=is_dry), "backup": backup})
    else:
        _print(output, done, is_dry=is_dry)
    if errors:
        raise click.exceptions.Exit(exit_of(errors[0].code) if len(errors) == len(done) else Exit.PARTIAL)


def _print(output: Output, done: list[Upgrade], *, is_dry: bool) -> None:
    shown = [one for one in done if one.outcome != "current"]
    if shown:
        output.table(("WORKFLOW", "NEWEST", "FROM", "TO", "STEPS", "RESULT"), map(_row, shown), right=" r  r")
    for one in shown:
        if one.error is not None:
            output.note(f"failed: {safe(one.workflow_id)}: {safe(one.error)}")
    current = len(done) - len(shown)
    if current:
        target = done[0].target
        output.note(f"{counted(current, 'workflow')} of version {target} already.")
    if not done:
        output.note("There is no workflow with a checkpoint.")
    elif is_dry:
        is_ready = any(one.outcome == "ready" for one in done)
        output.note("Nothing was changed." + (" --apply records the migrated states." if is_ready else ""))


def _row(one: Upgrade) -> tuple[str, ...]:
    result = str(one.outcome) if one.checkpoint_id is None else f"checkpoint {one.checkpoint_id.sequence}"
    steps = str(len(one.steps)) if one.steps else "-"
    return one.workflow_id, str(one.checkpoint_used.sequence), one.source, one.target, steps, result


def _fields(done: Iterable[Upgrade], *, is_dry: bool) -> dict[str, Any]:
    workflows = [
        {
            "workflow_id": one.workflow_id,
            "outcome": str(one.outcome),
            "source": one.source,
            "target": one.target,
            "steps": list(one.steps),
            "checkpoint_used": str(one.checkpoint_used),
            "checkpoint": None if one.checkpoint_id is None else str(one.checkpoint_id),
            "error": None
            if one.error is None
            else {
                "code": one.error.code,
                "message": one.error.message,
                "place": one.error.place,
                "hint": one.error.hint,
            },
        }
        for one in done
    ]
    counts = {
        name: sum(one["outcome"] == name for one in workflows)
        for name in ("current", "ready", "migrated", "failed")
    }
    return {"dry_run": is_dry, "workflows": workflows, **counts}
