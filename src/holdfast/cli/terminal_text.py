"""Text for a terminal: nothing in it is obeyed, columns are aligned, numbers are written for people."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import IO, Any

#: Control characters, line and paragraph separators, marks that reorder text, and lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
_NOT_ASCII = re.compile("[^\x00-\x7f]")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNITS = ("B", "KB", "MB", "GB", "TB")


def safe(text: object) -> str:
    """Write a text with everything that a terminal might obey spelled out."""
    return _UNSAFE.sub(_escape, str(text))


def json_text(value: Any) -> str:
    """Write a value as indented JSON in ASCII: nothing in it is ever obeyed by a terminal."""
    return _ascii(value, indent=2)


def json_line(value: Any) -> str:
    """Write a value as one line of JSON in ASCII, in which nothing is obeyed by a terminal."""
    return _ascii(value)


def _ascii(value: Any, indent: int | None = None) -> str:
    try:
        text = json.dumps(value, indent=indent)
    except RecursionError:
        from holdfast.domain import plainjson

        # Nested too deep for the encoder, and to be laid out; still the same JSON.
        text = _NOT_ASCII.sub(_json_escape, plainjson.dumps(value).decode())
    # The one control character that JSON leaves alone occurs in strings only.
    return text.replace("\x7f", "\\u007f")


def json_safe(text: str) -> str:
    """Spell out what a terminal might obey in a JSON text, which stays the same JSON."""
    # Line ends in JSON are layout; those inside strings are escaped already.
    return "\n".join(_UNSAFE.sub(_json_escape, line) for line in text.split("\n"))


def _escape(match: re.Match[str]) -> str:
    letter = match[0]
    number = ord(letter)
    if letter in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[letter]
    return (
        f"\\x{number:02x}"
        if number < 0x100
        else f"\\u{number:04x}"
        if number < 0x10000
        else f"\\U{number:08x}"
    )


def _json_escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1].replace("\x7f", "\\u007f")


def width(text: str) -> int:
    """Count the columns a text takes in a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


class Cell(str):
    """A text for people that stands for a value, which programs are told instead."""

    value: float | str

    def __new__(cls, text: str, value: float | str) -> Cell:
        made = super().__new__(cls, text)
        made.value = value
        return made


def size_text(count: float) -> Cell:
    """Write a number of bytes for people: `20.5 KB`."""
    shown: float = count
    unit = 0
    while shown >= 1000 and unit < len(_UNITS) - 1:
        shown /= 1000
        unit += 1
    text = f"{shown:.0f} {_UNITS[unit]}" if unit == 0 or shown >= 100 else f"{shown:.1f} {_UNITS[unit]}"
    return Cell(text, count)


def counted(count: int, noun: str) -> str:
    """Write a number with its noun: `1 checkpoint`, `2 checkpoints`, `2 entries`, `2 keys`."""
    if count == 1:
        return f"{count:,} {noun}"
    is_ies = noun.endswith("y") and noun[-2] not in "aeiou"
    return f"{count:,} {noun[:-1]}ies" if is_ies else f"{count:,} {noun}s"


def table_lines(head: Sequence[str], rows: Iterable[Sequence[str]], *, right: str = "") -> list[str]:
    """Align columns with two spaces between; `right` has an `r` for each column aligned to the right."""
    cells = [[safe(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(head, *cells, strict=True)]
    return [_table_line(row, widths, right) for row in ([*head], *cells)]


def _table_line(cells: Sequence[str], widths: Sequence[int], right: str) -> str:
    padded = []
    for index, (cell, full) in enumerate(zip(cells, widths, strict=True)):
        gap = " " * (full - width(cell))
        padded.append(gap + cell if right[index : index + 1] == "r" else cell + gap)
    return "  ".join(padded).rstrip()


def is_painted(stream: IO[str]) -> bool:
    """Tell whether words go to a terminal that can be painted, and what paints it is installed."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and find_spec("rich") is not None


def wants_color(stream: IO[str], choice: str, environment: Mapping[str, str]) -> bool:
    """Decide about colour: the flag first, then NO_COLOR, FORCE_COLOR, and whether it is a terminal."""
    if choice != "auto":
        return choice == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environment.get("TERM") != "dumb"
