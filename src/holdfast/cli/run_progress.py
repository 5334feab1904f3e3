"""Showing a run while it goes on: bars on a terminal, lines elsewhere, JSON lines for programs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any

import click

from holdfast.application.redaction.redacting import LOGS
from holdfast.cli.output import counted, json_line, safe, wants_color
from holdfast.cli.run_tally import Row, Tally
from holdfast.domain.plainjson import as_json_tree

if TYPE_CHECKING:
    from rich.console import Group
    from rich.spinner import Spinner

    from holdfast.cli.output import Output
    from holdfast.domain.plain import TypeRegistry

Tell = Callable[[str, Mapping[str, Any]], None]

_BAR_COLUMNS = 24
_NAME_COLUMNS = 28
_DOING_COLUMNS = 48
_FRAMES_PER_SECOND = 8


@contextmanager
def shown(output: Output, tally: Tally, types: TypeRegistry, *, events: bool) -> Iterator[Tell]:
    """Show a run in the manner that fits where its words go; yields what is to be told of it."""
    if events:
        yield json_lines(sys.stdout, types)
    elif output.as_json or output.quiet:
        yield _nothing
    elif _is_live():
        with _bars(output, tally):
            yield _nothing
    else:
        yield Lines(tally).told


def _is_live() -> bool:
    """Tell whether there is a terminal that can be painted, and what paints it is installed."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and find_spec("rich") is not None


def _nothing(kind: str, data: Mapping[str, Any]) -> None:
    """Say nothing."""


def json_lines(stream: IO[str], types: TypeRegistry) -> Tell:
    """Write each thing that happens as one line of JSON."""
    from holdfast.domain.plain import to_plain

    is_read = True

    def tell(kind: str, data: Mapping[str, Any]) -> None:
        nonlocal is_read
        fields, _ = LOGS.tree(as_json_tree(to_plain(dict(data), types)))
        line = json_line({"message_type": "event", "event": kind, **fields})
        try:
            # One write for each line: threads of agents tell things, too.
            if is_read:
                stream.write(line + "\n")
                stream.flush()
        except BrokenPipeError:
            # Nobody listens any more; the run is worth more than its story.
            is_read = False

    return tell


class Lines:
    """Tells a run in plain lines on standard error."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def told(self, kind: str, data: Mapping[str, Any]) -> None:
        """Say in one line what happened, if that is worth one."""
        say = getattr(self, f"_{kind}", None)
        text = say(data) if say is not None else None
        if text:
            click.echo(safe(text), err=True)

    def _agent_started(self, data: Mapping[str, Any]) -> str:
        again = f" (attempt {data['attempt']})" if data.get("attempt", 1) > 1 else ""
        return f"{data['step_id']}: started{again}"

    def _agent_completed(self, data: Mapping[str, Any]) -> str:
        row = self._tally.rows.get(data["agent"])
        count = f", {row.over} of {row.steps}" if row is not None and row.is_many else ""
        return f"{data['step_id']}: done in {seconds_text(data.get('seconds') or 0.0)}{count}"

    def _agent_failed(self, data: Mapping[str, Any]) -> str:
        again = "; it is tried again" if data.get("retries") else ""
        return f"{data['step_id']}: failed: {data.get('error')}{again}"

    def _agent_skipped(self, data: Mapping[str, Any]) -> str:
        return f"{data['step_id']}: skipped: {data.get('reason')}"

    def _approval_requested(self, data: Mapping[str, Any]) -> str:
        return f"{data['step_id']}: waits for an answer to {data['name']}: {data.get('question', '')}"

    def _approval_answered(self, data: Mapping[str, Any]) -> str:
        how = "granted" if data.get("granted") else "denied"
        return f"{data['step_id']}: {data['name']} was {how}"

    def _checkpoint_failed(self, data: Mapping[str, Any]) -> str:
        return f"warning: a checkpoint failed: {data['error']}"

    def _commit_failed(self, data: Mapping[str, Any]) -> str:
        return f"warning: not durable: {data['error']}"

    def _warning(self, data: Mapping[str, Any]) -> str:
        return f"warning: {data['text']}"

    def _phase_completed(self, data: Mapping[str, Any]) -> str:
        made = counted(self._tally.checkpoints, "checkpoint")
        return f"phase {data['phase']} of {data['of']} is over, {made} so far"

    def _stopping(self, data: Mapping[str, Any]) -> str:
        return f"{data['status']} by {data.get('by')}: what is at work ends first"


@contextmanager
def _bars(output: Output, tally: Tally) -> Iterator[None]:
    """Paint the rows of a tally anew several times a second; what a program prints stands above them."""
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner

    # One for all rows: each keeps the time since it was first seen.
    spinner = Spinner("line")
    console = Console(file=sys.stderr, no_color=not wants_color(sys.stderr, output.color, os.environ))
    with Live(
        console=console,
        get_renderable=lambda: table_of(tally, spinner),
        refresh_per_second=_FRAMES_PER_SECOND,
    ):
        yield


def table_of(tally: Tally, spinner: Spinner) -> Group:
    """Lay the rows of a tally out for a terminal."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1))
    for row in tally.snapshot():
        mark: Spinner | Text = spinner if row.running else Text(_mark(row), style=_style(row))
        share = row.share if not row.is_many and row.share is not None else row.over / row.steps
        bar = ProgressBar(total=1.0, completed=share, width=_BAR_COLUMNS)
        name = Text(_cut(row.name, _NAME_COLUMNS), style="bold" if row.running else "")
        grid.add_row(mark, name, bar, Text(_count(row)), Text(_cut(row.doing, _DOING_COLUMNS), style="dim"))
    waiting = [
        f"{step_id} waits for {asked}: {text}" for (step_id, asked), text in tally.waiting.copy().items()
    ]
    foot = [counted(tally.checkpoints, "checkpoint"), *waiting]
    return Group(grid, *(Text(f"  {safe(line)}", style="dim") for line in foot))


def _mark(row: Row) -> str:
    if row.over >= row.steps:
        return "-" if row.skipped == row.over else "+"
    return "!" if row.failed else " "


def _style(row: Row) -> str:
    return "red" if row.failed and row.over < row.steps else "green"


def _count(row: Row) -> str:
    if row.is_many:
        return f"{row.over}/{row.steps}"
    if row.kept:
        return "kept"
    return seconds_text(row.seconds) if row.done else ""


def _cut(text: str, width: int) -> str:
    whole = safe(text)
    return whole if len(whole) <= width else f"{whole[: width - 3]}..."


def seconds_text(seconds: float) -> str:
    """Write a time for people: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
