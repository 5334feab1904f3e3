"""Tables and trees on a terminal, laid out by rich; loaded only where there is one."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text
from rich.tree import Tree

from holdfast.cli.terminal_text import safe, width

if TYPE_CHECKING:
    from holdfast.cli.tables import Table
    from holdfast.cli.trees import Branch

#: Columns whose words say how something stands.
_STATUS_COLUMNS = frozenset({"status", "outcome", "result", "level"})
_STYLES = {
    "green": {"completed", "success", "copied", "migrated", "ok", "valid", "restored", "granted"},
    "yellow": {"paused", "waiting", "warn", "pending", "ready", "recovering", "stale"},
    "red": {"failed", "failure", "damaged", "refused", "denied", "corrupt", "crashed", "cancelled"},
}
_STYLE_OF = {word: style for style, words in _STYLES.items() for word in words}
_GAP = 2
#: A time, a number or a size, which nobody reads over two lines.
_ONE_WORD = re.compile(r"[-\d:., ]+(?:[kKMGTP]?B|[mu]?s)?")
#: A longer one is a hash or worse, and may be broken.
_WORD_MAX = 40


def print_table(table: Table, *, is_colored: bool) -> None:
    """Print a table with a bold head, wrapped to the width of the terminal, but never inside a word."""
    console = _console(is_colored=is_colored)
    console.print(laid_out(table, console.width))


def laid_out(table: Table, columns: int) -> RichTable:
    """Lay a table out: words that say how something stands are coloured, and say it without colour too."""
    return _upright(table, columns) if is_upright(table, columns) else _on_its_side(table)


def is_upright(table: Table, columns: int) -> bool:
    """Tell whether the columns of a table fit beside each other with no word broken."""
    return sum(_least_widths(table)) <= _room(table, columns)


def _upright(table: Table, columns: int) -> RichTable:
    grid = _grid()
    sides = table.right.ljust(len(table.head))
    for title, side, chars in zip(table.head, sides, _widths(table, columns), strict=True):
        justify: Literal["left", "right"] = "right" if side == "r" else "left"
        grid.add_column(title, justify=justify, overflow="fold", width=chars)
    for row in table.rows:
        grid.add_row(*(_cell(name, cell) for name, cell in zip(table.names, row, strict=True)))
    return grid


def _on_its_side(table: Table) -> RichTable:
    """Lay a table out whose columns do not fit: each cell on lines of its own, after its title."""
    grid = _grid(show_header=False)
    grid.add_column(overflow="fold", style="bold")
    grid.add_column(overflow="fold")
    for row in table.rows:
        for title, name, cell in zip(table.head, table.names, row, strict=True):
            grid.add_row(title, _cell(name, cell))
        grid.add_row("", "")
    return grid


def _grid(*, show_header: bool = True) -> RichTable:
    padding = (0, _GAP, 0, 0)
    return RichTable(box=None, padding=padding, pad_edge=False, header_style="bold", show_header=show_header)


def _room(table: Table, columns: int) -> int:
    """Count what is left for words; rich puts a gap after the last column too."""
    return columns - _GAP * len(table.head)


def _widths(table: Table, columns: int) -> list[int]:
    """Choose how wide each column is: the widest give way, none below its least.

    rich would choose itself, but cuts text off where a least width is more than it chose.
    """
    room, least = _room(table, columns), _least_widths(table)
    cells = zip(table.head, *table.rows, strict=True)
    widths = [min(max(width(safe(cell)) for cell in column), room) for column in cells]
    while sum(widths) > room:
        giving = (place for place, chars in enumerate(widths) if chars > least[place])
        widths[max(giving, key=widths.__getitem__)] -= 1
    return widths


def _least_widths(table: Table) -> list[int]:
    """Count what each column takes at least, with no word, time or size broken."""
    columns = zip(table.head, *table.rows, strict=True)
    return [min(max(map(_longest_word, column)), _WORD_MAX) for column in columns]


def _longest_word(cell: str) -> int:
    words = [cell] if _ONE_WORD.fullmatch(cell) else safe(cell).split()
    return max(map(width, words), default=0)


def _cell(column: str, cell: str) -> Text:
    word = cell.partition(" ")[0].strip(",").lower()
    return Text(safe(cell), style=_STYLE_OF.get(word, "") if column in _STATUS_COLUMNS else "")


def print_tree(root: Branch, *, is_colored: bool) -> None:
    """Print a tree with lines between its branches."""
    _console(is_colored=is_colored).print(grown(root))


def grown(root: Branch) -> Tree:
    """Lay a tree out."""
    whole = Tree(Text(safe(root.text), style="bold"), guide_style="dim")
    waiting = [(root, whole)]
    while waiting:
        branch, tree = waiting.pop()
        for one in branch.below:
            waiting.append((one, tree.add(Text(safe(one.text)))))
    return whole


def _console(*, is_colored: bool) -> Console:
    # Text out of a store is no markup, and is not searched for what might be highlighted.
    return Console(
        file=sys.stdout, color_system="auto" if is_colored else None, markup=False, highlight=False
    )
