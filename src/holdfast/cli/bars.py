"""Showing how far long work has come: a bar on a terminal, JSON lines for programs, nothing elsewhere.

All of it goes to standard error. Nothing is shown of what is over at once.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from holdfast.cli.output import Output, is_painted, json_line, safe, wants_color

if TYPE_CHECKING:
    from rich.progress import Progress

#: So long nothing is shown.
PATIENCE_SECONDS = 1.0
#: Programs are told so often, and those that end sooner say nothing.
STATUS_SECONDS = 5.0

_Item = TypeVar("_Item")
#: Shows how much is done of how much (0: nobody knows), and what is at work.
Show = Callable[..., None]


class _Painter(Protocol):
    def __call__(self, done: int, total: int, what: str) -> None:
        """Show how far it has come."""


@contextmanager
def bar(output: Output, label: str) -> Iterator[Show]:
    """Show one bar for everything that is done inside; yields what is told how far it has come."""
    with ExitStack() as stack:
        painter, patience_seconds = _painter(output, label, stack)
        started = time.monotonic()

        def show(done: int, total: int, what: str = "") -> None:
            if painter is not None and time.monotonic() - started >= patience_seconds:
                painter(done if not total else min(done, total), total, what)

        yield show


def watched(
    output: Output,
    items: Iterable[_Item],
    label: str,
    *,
    total: int | None = None,
    what: Callable[[_Item], str] | None = None,
) -> Iterator[_Item]:
    """Yield what is worked through, and show how far it has come."""
    count = len(items) if total is None and isinstance(items, Sequence) else total or 0
    with bar(output, label) as show:
        for place, item in enumerate(items):
            show(place, count, what(item) if what else "")
            yield item


def _painter(output: Output, label: str, stack: ExitStack) -> tuple[_Painter | None, float]:
    if output.as_json:
        return _StatusLines(label), STATUS_SECONDS
    if output.quiet or not sys.stderr.isatty():
        return None, 0.0
    if is_painted(sys.stderr):
        return _RichBar(output, label, stack), PATIENCE_SECONDS
    return _CountingLine(label, stack), PATIENCE_SECONDS


class _StatusLines:
    """Writes a line of JSON every few seconds."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._told = -STATUS_SECONDS

    def __call__(self, done: int, total: int, what: str) -> None:
        now = time.monotonic()
        if now - self._told < STATUS_SECONDS:
            return
        self._told = now
        fields = {"message_type": "status", "work": self._label, "done": done, "total": total or None}
        click.echo(json_line({**fields, "what": what or None}), err=True)


class _RichBar:
    """Paints a bar that is gone when the work is done."""

    def __init__(self, output: Output, label: str, stack: ExitStack) -> None:
        self._output = output
        self._label = label
        self._stack = stack
        self._progress: Progress | None = None

    def __call__(self, done: int, total: int, what: str) -> None:
        if self._progress is None:
            self._progress = self._stack.enter_context(rich_progress(self._output))
            self._progress.add_task(self._label, total=None, what="")
        (task,) = self._progress.task_ids
        self._progress.update(task, completed=done, total=total or None, what=safe(what))


def rich_progress(output: Output) -> Progress:
    """Make what paints bars on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    is_colored = wants_color(sys.stderr, output.color, os.environ)
    console = Console(file=sys.stderr, color_system="auto" if is_colored else None)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[what]}", markup=False),
        console=console,
        transient=True,
    )


class _CountingLine:
    """Counts in one line of a terminal that nothing paints."""

    def __init__(self, label: str, stack: ExitStack) -> None:
        self._label = label
        self._stack = stack
        self._is_begun = False

    def __call__(self, done: int, total: int, what: str) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._stack.callback(click.echo, err=True)
        of_all = f" of {total:,}" if total else ""
        click.echo(f"\r{self._label} {done:,}{of_all}", nl=False, err=True)
