"""`holdfast copy`: bring workflows from one store to another."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli import bars
from holdfast.cli.changing import Change, changes
from holdfast.cli.exits import Exit, exit_of
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import entry_of, find_workflow, reading, refuse_inside, writing
from holdfast.cli.output import Output, counted, safe, size_text
from holdfast.domain.errors import CheckpointError, StoreNotFoundError

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.transport.copying import CopyResult, WorkflowCopy
    from holdfast.application.transport.people_transport import PeopleCopy
    from holdfast.ports import Store

#: Stores whose URL names a path.
_PATH_URL = re.compile(
    r"(?:(file|sqlite|postgresql\+embedded):(?://)?)?((?![a-z][a-z0-9+.-]+:).*)", re.DOTALL
)
#: Steps of the bar for each workflow.
_STEPS = 1000


class _TwoStoresCommand(StoreCommand):
    """Takes its stores as arguments: the option that names one would only confuse."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params = [parameter for parameter in self.params if parameter.name != "store"]


@click.command("copy", cls=_TwoStoresCommand)
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@click.argument("workflows", metavar="[WORKFLOW]...", nargs=-1)
@changes()
def command(call: Call, source: str, target: str, workflows: tuple[str, ...], change: Change) -> None:
    """Copy workflows from one store to another.

    SRC and DST are folders or URLs; DST is made if it is not there. Of each
    workflow (all of them without WORKFLOW) checkpoints, events and blobs are
    copied with their checksums, and read back and verified on arrival. All
    legal holds and declared subjects of SRC come along. Without WORKFLOW the
    trail of SRC does too, sealed, beside that of DST. Called again, it goes on
    where it was interrupted and adds what is new.

    \b
    Example:
      holdfast copy .holdfast backup/holdfast WF-2026-001 --dry-run
    """
    if call.store is not None:
        raise click.UsageError("copy takes its stores as arguments, not by --store")
    if _place(source) == _place(target):
        raise click.UsageError("SRC and DST are the same store")
    if (path := _PATH_URL.fullmatch(target)) is not None:
        refuse_inside(path[2], _place(source), "DST")
    if target.startswith("memory:"):
        raise click.UsageError("a store in memory is gone when the command ends")
    with reading(replace(call, store=source)) as kit, told_why(replace(call, store=target), change):
        chosen = list(dict.fromkeys(find_workflow(kit, name) for name in workflows))
        chosen = chosen or sorted(kit.store.workflows())
        with _opened(target, dry_run=change.dry_run) as store:
            result = _copy(call.output, kit, store, chosen, dry_run=change.dry_run, with_trail=not workflows)
            # A target that is not there yet was stood in for by one in memory.
            places = (kit.store.url, _place(target) if store.url == "memory:" else store.url)
    finish(call.output, places, result)


@contextmanager
def told_why(call: Call, change: Change) -> Iterator[None]:
    """Tell in the trail of the target why something comes, under one id with what it tells of each."""
    if change.dry_run or change.reason is None:
        yield
        return
    from holdfast.application.trailing import correlate, correlation

    with correlate(correlation() or f"cli-{token_hex(8)}"):
        with writing(call, create=True, reason=change.reason):
            pass
        yield


def _place(url: str) -> str:
    """Name the place that a URL means, the same for each way to write a path."""
    found = _PATH_URL.fullmatch(url)
    return url if found is None else f"{found[1] or 'file'}:{os.path.realpath(found[2])}"


@contextmanager
def _opened(url: str, *, dry_run: bool) -> Iterator[Store]:
    """Open the target; for a dry run one that is not there is as good as an empty one."""
    from holdfast import bootstrap
    from holdfast.config import Config

    try:
        store = bootstrap.open_store(Config.load({"store": url}), read_only=dry_run, create=not dry_run)
    except StoreNotFoundError:
        if not dry_run:
            raise
        store = bootstrap.open_store(Config(store="memory:"))
    try:
        yield store
    finally:
        store.close()


def _copy(
    output: Output, kit: Kit, target: Store, workflow_ids: list[str], *, dry_run: bool, with_trail: bool
) -> CopyResult:
    from holdfast.application.transport.copying import Copier

    tell = partial(entry_of, kit) if kit.audit else None
    with bar(output, workflow_ids) as show:
        copier = Copier(kit.store, target, kit.packer, kit.formats, show, kit.vault, tell)
        if dry_run:
            return copier.plan(workflow_ids, with_trail=with_trail)
        try:
            return copier.copy(workflow_ids, with_trail=with_trail)
        except BaseException:
            output.note("Not finished: what has arrived is whole. The same command goes on from there.")
            raise


@contextmanager
def bar(
    output: Output, workflow_ids: list[str], label: str = "copy"
) -> Iterator[Callable[[str, int, int], None]]:
    """Show one bar for everything, on a terminal."""
    before = {workflow_id: number * _STEPS for number, workflow_id in enumerate(workflow_ids)}
    with bars.bar(output, label) as show:

        def told(workflow_id: str, done: int, total: int) -> None:
            reached = before[workflow_id] + _STEPS * min(done, total) // max(total, 1)
            show(reached, len(workflow_ids) * _STEPS, workflow_id)

        yield told


def finish(output: Output, places: tuple[str, str], result: CopyResult) -> None:
    """Print the result; end with why it failed if nothing went right, else with 3 if something failed."""
    from holdfast.application.transport.copying import Outcome

    errors = [one.error for one in result.of(Outcome.FAILED) if one.error is not None]
    if len(errors) == len(result.workflows) == 1:
        raise errors[0]
    if output.as_json:
        output.data(result_fields(places, result))
    else:
        print_result(output, result)
    if errors:
        leaves = {exit_of(error.code) for error in errors}
        is_all = len(errors) == len(result.workflows) and len(leaves) == 1
        raise click.exceptions.Exit(leaves.pop() if is_all else Exit.PARTIAL)


def print_result(output: Output, result: CopyResult) -> None:
    """Print a result for people."""
    _print_people(output, result.people, dry_run=result.dry_run)
    if not result.workflows:
        output.note("Nothing to copy: the source is empty.")
        return
    head = ("WORKFLOW", "CHECKPOINTS", "TOMBSTONES", "EVENTS", "KEYFRAMES", "BLOBS", "BYTES", "RESULT")
    output.table(head, [_row(one, dry_run=result.dry_run) for one in result.workflows], right=" rrrrrr")
    for one in result.workflows:
        if one.error is not None:
            output.note(f"failed: {safe(one.workflow_id)}: {safe(one.error)}")
    if result.dry_run:
        output.note("Nothing was changed.")
        return
    if result.trail is not None and result.trail.id:
        entries = counted(result.trail.entries, "entry")
        output.note(f"The trail of the source, {entries}, is sealed in imports/{result.trail.id}.")
    count = counted(len(result.workflows), "workflow")
    output.note(f"{count}, {size_text(result.cargo.bytes)} in {result.seconds:.1f} s, verified on arrival.")


def _print_people(output: Output, people: PeopleCopy, *, dry_run: bool) -> None:
    if people.holds or people.declarations:
        counts = f"{counted(people.holds, 'legal hold')}, {counted(people.declarations, 'declared subject')}"
        output.note(f"{'To come' if dry_run else 'Came'} along: {counts}.")
    for pseudonym in people.kept:
        output.note(f"What is declared about {safe(pseudonym)} differs and cannot be opened: kept as it was.")


def _row(one: WorkflowCopy, *, dry_run: bool) -> tuple[str, ...]:
    cargo = one.cargo
    counts = (cargo.checkpoints, cargo.tombstones, cargo.events, cargo.keyframes, cargo.blobs)
    words = {"copied": "to copy" if dry_run else "copied", "present": "already there"}
    return (
        one.workflow_id,
        *(f"{count:,}" for count in counts),
        size_text(cargo.bytes),
        words.get(one.outcome, one.outcome),
    )


def result_fields(places: tuple[str, str], result: CopyResult) -> dict[str, Any]:
    """Write a result for programs; the places are source and target."""
    return {
        "source": places[0],
        "target": places[1],
        "dry_run": result.dry_run,
        "workflows": [
            {
                "workflow_id": one.workflow_id,
                "outcome": one.outcome.value,
                **asdict(one.cargo),
                "error": None if one.error is None else _error_fields(one.error),
            }
            for one in result.workflows
        ],
        **asdict(result.cargo),
        "trail": None if result.trail is None else asdict(result.trail),
        "people": asdict(result.people),
        "seconds": round(result.seconds, 3),
    }


def _error_fields(error: CheckpointError) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "place": error.place, "hint": error.hint}
