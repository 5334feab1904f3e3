"""Tables before they are printed: their columns chosen, their times local, as objects and as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeAlias

import click

from holdfast.cli.terminal_text import Cell, safe

#: What a cell is for programs.
Value: TypeAlias = float | str | None

_NUMBER = re.compile(r"-?[0-9][0-9,]*(\.[0-9]+)?")
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
            tuple(_in_local_time(cell) if place in places else cell for place, cell in enumerate(row))
            for row in self.rows
        ]
        return replace(self, head=head, rows=rows)

    def objects(self) -> Iterator[dict[str, Value]]:
        """Yield each row as an object: sizes in bytes, spans in seconds, shares of one, times as stored."""
        return (dict(zip(self.names, row, strict=True)) for row in self._values())

    def csv_lines(self) -> Iterator[str]:
        """Yield the lines of RFC 4180, without their ends; the first one names the columns."""
        for row in (self.names, *self._values()):
            line = io.StringIO()
            csv.writer(line, lineterminator="").writerow(
                [safe(value) if isinstance(value, str) else value for value in row]
            )
            yield line.getvalue()

    def _values(self) -> Iterator[tuple[Value, ...]]:
        """Yield each row as programs want it."""
        sides = self.right.ljust(len(self.head))
        for row in self.rows:
            yield tuple(_value(cell, is_number=side == "r") for cell, side in zip(row, sides, strict=True))


def _value(cell: str, *, is_number: bool) -> Value:
    """Answer what a cell stands for; columns that are aligned to the right are numbers."""
    if isinstance(cell, Cell):
        return cell.value
    if is_number and cell in ("", "-"):
        return None
    if not is_number or _NUMBER.fullmatch(cell) is None:
        return cell
    digits = cell.replace(",", "")
    return float(digits) if "." in digits else int(digits)


def _in_local_time(cell: str) -> str:
    return Cell(_local(cell), cell.value) if isinstance(cell, Cell) else _local(cell)


def _local(cell: str) -> str:
    """Write a time in the time zone of this machine; what is none stays."""
    try:
        moment = datetime.strptime(cell[:_TIME_CHARS], _TIME).replace(tzinfo=UTC)
        return moment.astimezone().strftime(_TIME) + cell[_TIME_CHARS:]
    except (ValueError, OverflowError):
        return cell
