"""Tables before they are printed: their columns chosen, their times local, as objects and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import click

from holdfast.cli.terminal_text import safe

_UTC = " (UTC)"
_TIME = "%Y-%m-%d %H:%M:%S"
_TIME_CHARS = 19


@dataclass(frozen=True, slots=True)
class Table:
    """A head and rows of as many cells; `right` has an `r` for each column aligned to the right."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    right: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns as they are asked for: `NEWEST (UTC)` is `newest`."""
        return tuple(title.partition(" (")[0].lower().replace(" ", "_") for title in self.head)

    def only(self, columns: Sequence[str]) -> Table:
        """Answer the table with just these columns, in this order.

        Raises:
            click.UsageError: it has no such column.
        """
        names = self.names
        for column in columns:
            if column not in names:
                raise click.UsageError(f"--columns {column}: the columns are {', '.join(names)}")
        places = [names.index(column) for column in columns]
        sides = self.right.ljust(len(names))
        return Table(
            tuple(self.head[place] for place in places),
            [tuple(row[place] for place in places) for row in self.rows],
            "".join(sides[place] for place in places),
        )

    def in_local_time(self) -> Table:
        """Answer the table with its times in the time zone of this machine; their heads say so."""
        places = {place for place, title in enumerate(self.head) if title.endswith(_UTC)}
        head = tuple(title.replace(_UTC, " (local)") for title in self.head)
        rows = [
            tuple(_local(cell) if place in places else cell for place, cell in enumerate(row))
            for row in self.rows
        ]
        return replace(self, head=head, rows=rows)

    def objects(self) -> Iterator[dict[str, str]]:
        """Yield each row as an object; the values are what the table shows."""
        return (dict(zip(self.names, row, strict=True)) for row in self.rows)

    def csv_lines(self) -> Iterator[str]:
        """Yield the lines of RFC 4180, without their ends; the first one names the columns."""
        for row in (self.names, *self.rows):
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow([safe(cell) for cell in row])
            yield line.getvalue()


def _local(cell: str) -> str:
    """Write a time in the time zone of this machine; what is none stays."""
    try:
        moment = datetime.strptime(cell[:_TIME_CHARS], _TIME).replace(tzinfo=UTC)
        return moment.astimezone().strftime(_TIME) + cell[_TIME_CHARS:]
    except (ValueError, OverflowError):
        return cell
