"""`holdfast watch`: follow workflows while they run."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import click

from holdfast.cli.events import event_fields
from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.listing import time_text
from holdfast.cli.moments import read_moment
from holdfast.cli.opening import entry_of, find_workflow, reading, tell
from holdfast.cli.output import Output, is_painted, json_line, safe, wants_color
from holdfast.domain.audit_type import AuditType

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from holdfast.cli.watch_rows import Change, Watch

Show = Callable[["Change"], None]

_NOTIFY_SECONDS_MAX = 30
#: How often the table is painted while nothing is new.
_FRAMES_PER_SECOND = 4


@click.command("watch", cls=StoreCommand)
@click.argument("workflows", metavar="[WORKFLOW]...", nargs=-1)
@click.option("--since", metavar="TIME", callback=read_moment, help="Begin with what happened since: 1h.")
@click.option(
    "--events",
    "kinds",
    metavar="KIND",
    multiple=True,
    help="Only these: AGENT_FAILED, or run, stage, agent, decision, approval, failure, recovery, checkpoint, "
    "finding, note. May be given again.",
)
@click.option(
    "--until",
    type=click.Choice(["done", "failed"]),
    help="End when all have ended, or one has failed. [default: done, with WORKFLOW]",
)
@click.option(
    "--interval",
    "interval_seconds",
    metavar="SECONDS",
    type=click.FloatRange(0.05, 3600),
    default=1.0,
    show_default=True,
    help="How often to look.",
)
@click.option("--notify", metavar="CMD", help="Run this for each change, which it is given as JSON.")
def command(
    call: Call,
    workflows: tuple[str, ...],
    since: datetime | None,
    kinds: tuple[str, ...],
    until: str | None,
    interval_seconds: float,
    notify: str | None,
) -> None:
    """Follow workflows while they run.

    The given ones until they have ended, or whatever happens in the store until
    interrupted: a table on a terminal, else a line for each change, JSON with
    --json. Ends with 7 if one failed.

    \b
    Example:
      holdfast watch WF-2026-001 --events failure --events approval
    """
    ask = _notifier(notify)
    with reading(call) as kit:
        from holdfast.cli.watch_rows import Watch

        chosen = list(dict.fromkeys(find_workflow(kit, name) for name in workflows))
        facts: dict[str, int | str] = {"follow": "yes"}
        about: list[str | None] = [*chosen] or [None]
        tell(call, kit, [entry_of(kit, AuditType.EVENTS_READ, name, facts) for name in about])
        watch = Watch(kit, chosen, since, kinds)
        end = until or ("done" if chosen else None)
        is_silent = True
        with _shown(call.output, watch) as show:
            while True:
                for change in watch.look():
                    show(change)
                    ask(change)
                    is_silent = False
                if watch.is_over(end):
                    break
                time.sleep(interval_seconds)
        if is_silent:
            _tell_standing(call.output, watch)
    if watch.failed:
        call.output.note(f"failed: {', '.join(map(safe, watch.failed))}")
        raise click.exceptions.Exit(Exit.RUN_FAILED)


def _tell_standing(output: Output, watch: Watch) -> None:
    """Say how workflows stand in which nothing happened: silence would look like a fault."""
    failed = set(watch.failed)
    for name, status in watch.standing:
        if output.as_json or output.layout == "jsonl":
            click.echo(json_line({"message_type": "standing", "workflow_id": name, "status": status}))
        elif name not in failed:
            output.note(f"{safe(name)} is {safe(status)}; nothing happened while it was watched.")


@contextmanager
def _shown(output: Output, watch: Watch) -> Iterator[Show]:
    """Show changes in the manner that fits where they go."""
    if output.as_json or output.layout == "jsonl":
        yield lambda change: click.echo(json_line(fields_of(change)))
    elif is_painted(sys.stdout):
        with _table(output, watch):
            yield lambda change: None
    else:
        yield lambda change: output.line(line_of(change))


@contextmanager
def _table(output: Output, watch: Watch) -> Iterator[None]:
    """Paint the rows anew several times a second."""
    from rich.console import Console
    from rich.live import Live

    from holdfast.cli.rich_layout import is_upright, laid_out
    from holdfast.cli.tables import Table
    from holdfast.cli.watch_rows import HEAD, RIGHT

    is_colored = wants_color(sys.stdout, output.color, os.environ)
    console = Console(
        file=sys.stdout, color_system="auto" if is_colored else None, markup=False, highlight=False
    )

    def table() -> RichTable:
        lines = console.height - 3
        found = Table(HEAD, watch.cells(lines), RIGHT)
        if not is_upright(found, console.width):
            found = replace(found, rows=watch.cells(lines // (len(HEAD) + 1)))
        return laid_out(found.in_local_time() if output.is_local_time else found, console.width)

    with Live(console=console, get_renderable=table, refresh_per_second=_FRAMES_PER_SECOND):
        yield


def line_of(change: Change) -> str:
    """Write a change on one line."""
    detail = f" ({change.story.detail})" if change.story.detail else ""
    at = time_text(change.timestamp)
    return safe(f"{at}  {change.event.workflow_id}  {change.status}  {change.story.text}{detail}")


def fields_of(change: Change) -> dict[str, object]:
    """Write a change for programs."""
    return {**event_fields(change.event), "message_type": "change", "status": change.status}


def _notifier(command_line: str | None) -> Show:
    """Answer what runs a command for each change."""
    if command_line is None:
        return lambda change: None
    try:
        words = shlex.split(command_line)
    except ValueError as fault:
        raise click.UsageError(f"--notify cannot be read ({fault})") from None
    if not words:
        raise click.UsageError("--notify is empty")
    return lambda change: _notify(words, change)


def _notify(words: list[str], change: Change) -> None:
    """Run a command with a change on its standard input; no word of it comes from a store, and no shell."""
    try:
        done = subprocess.run(
            words,
            input=json_line(fields_of(change)).encode() + b"\n",
            # What it prints is talk.
            stdout=2,
            timeout=_NOTIFY_SECONDS_MAX,
            check=False,
        )
        problem = f"it ended with {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired:
        problem = f"it took longer than {_NOTIFY_SECONDS_MAX} s"
    except OSError as fault:
        problem = fault.strerror or str(fault)
    if problem:
        click.echo(f"warning: --notify {safe(words[0])}: {safe(problem)}", err=True)
