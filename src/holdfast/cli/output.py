"""What reaches the terminal: tables, trees, JSON, colour where it is wanted, never raw control characters.

Data goes to standard output, talk to standard error. Text out of a store may be anything, an escape sequence
that repaints the screen too, so all of it passes through `safe`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import click

from holdfast.cli.terminal_text import (
    Cell,
    counted,
    is_painted,
    json_line,
    json_safe,
    json_text,
    safe,
    size_text,
    table_lines,
    wants_color,
    width,
)

if TYPE_CHECKING:
    from holdfast.cli.trees import Branch

#: Whoever prints needs both: how, and what a text looks like.
__all__ = [
    "Cell",
    "Output",
    "counted",
    "is_painted",
    "json_line",
    "json_safe",
    "json_text",
    "safe",
    "size_text",
    "table_lines",
    "wants_color",
    "width",
]

_COLOURS = {"good": "green", "warn": "yellow", "bad": "red", "added": "green", "removed": "red"}


@dataclass(frozen=True, slots=True)
class Output:
    """How one call of the command line prints.

    Attributes:
        layout: how tables are printed: table, jsonl or csv; with json there are none.
        columns: of tables, only these in this order; all of them where there is none.
        is_local_time: whether times in tables are shown as the clock on the wall does, and not in UTC.
        no_input: whether nobody may be asked anything.
    """

    as_json: bool = False
    quiet: bool = False
    color: str = "auto"
    layout: str = "table"
    columns: tuple[str, ...] = ()
    is_local_time: bool = False
    no_input: bool = False

    def line(self, text: str = "") -> None:
        """Print one line of data; what came out of a store has passed `safe` before."""
        click.echo(text, color=self._colored(sys.stdout))

    def lines(self, texts: Iterable[str]) -> None:
        """Print lines of data."""
        for text in texts:
            self.line(text)

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], *, right: str = "") -> None:
        """Print a table as it is asked for: aligned with a bold head, as JSON lines, or as CSV."""
        from holdfast.cli.tables import Table

        table = Table(tuple(head), [tuple(row) for row in rows], right)
        if self.columns:
            table = table.only(self.columns)
        if self.is_local_time:
            table = table.in_local_time()
        if self.layout == "jsonl":
            self.lines(map(json_line, table.objects()))
        elif self.layout == "csv":
            self.lines(table.csv_lines())
        elif is_painted(sys.stdout):
            from holdfast.cli.rich_layout import print_table

            print_table(table, is_colored=self._colored(sys.stdout))
        else:
            first, *rest = table_lines(table.head, table.rows, right=table.right)
            self.lines([self.bold(first), *rest])

    def tree(self, root: Branch) -> None:
        """Print a tree; on a terminal with lines between its branches."""
        if is_painted(sys.stdout):
            from holdfast.cli.rich_layout import print_tree

            print_tree(root, is_colored=self._colored(sys.stdout))
        else:
            self.lines(root.lines())

    def data(self, value: Any) -> None:
        """Print one JSON document."""
        click.echo(json_text(value))

    def note(self, text: str) -> None:
        """Say something beside the data, unless quiet is wanted."""
        if not self.quiet and not self.as_json:
            click.echo(text, err=True, color=self._colored(sys.stderr))

    def bold(self, text: str) -> str:
        """Mark a heading."""
        return click.style(text, bold=True)

    def faint(self, text: str) -> str:
        """Mark what may be passed over."""
        return click.style(text, dim=True)

    def paint(self, text: str, meaning: str) -> str:
        """Colour a text by what it means: good, warn, bad, added, removed; the words must say it too."""
        return click.style(text, fg=_COLOURS[meaning])

    def _colored(self, stream: IO[str]) -> bool:
        return wants_color(stream, self.color, os.environ)
