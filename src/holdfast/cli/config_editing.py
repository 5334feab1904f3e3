"""Changing one key of a TOML file by its line, and proving that nothing else has changed.

No TOML is written anew: comments, order and spelling of everything else stay. What the result says is
compared with what it should say; a file that is written in a manner not known here is left alone.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any

from holdfast.domain.errors import ConfigError

_HEAD = re.compile(r"\s*\[")


@dataclass(frozen=True, slots=True)
class Edit:
    """A key with the table it stands in, if any, and its new value as TOML; None takes it out."""

    keys: tuple[str, ...]
    value: str | None

    @property
    def key(self) -> str:
        return self.keys[-1]

    @property
    def table(self) -> str | None:
        return self.keys[0] if len(self.keys) > 1 else None


def toml_text(value: Any) -> str:
    """Write a value as TOML has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    # Every string of JSON in ASCII is one of TOML, too, but for this one character and half a letter.
    text = json.dumps(str(value)).replace("\x7f", "\\u007f")
    return re.sub(r"\\u(d[89ab]..)\\u(d[c-f]..)", _whole, text)


def _whole(pair: re.Match[str]) -> str:
    high, low = (int(half, 16) for half in pair.groups())
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


def read_toml(text: str, path: str) -> dict[str, Any]:
    """Read a settings file.

    Raises:
        ConfigError: it is no TOML.
    """
    try:
        return tomllib.loads(text)
    except ValueError as fault:
        raise ConfigError(f"the configuration file cannot be read ({fault})", place=path) from fault


def edited(text: str, edit: Edit, path: str) -> str:
    """Answer the text with one key changed.

    Raises:
        ConfigError: the file is no TOML, or is written so that its lines cannot be changed safely.
    """
    before = read_toml(text, path)
    wanted = _wanted(before, edit, path)
    if wanted == before:
        return text
    # Whatever was taken for a line of the key and is none shows here.
    try:
        changed = _changed(text, edit)
        is_right = tomllib.loads(changed) == wanted
    except ValueError:
        is_right = False
    if not is_right:
        raise ConfigError(
            f"{'.'.join(edit.keys)} cannot be changed without touching something else",
            place=path,
            hint="Nothing was changed. Change the file by hand.",
        )
    return changed


def _wanted(before: dict[str, Any], edit: Edit, path: str) -> dict[str, Any]:
    """Answer what the file should say afterwards."""
    wanted = {name: dict(value) if isinstance(value, dict) else value for name, value in before.items()}
    inside = wanted.setdefault(edit.table, {}) if edit.table else wanted
    if not isinstance(inside, dict):
        raise ConfigError(
            f"{edit.table} is no table", place=path, hint=f"Write [{edit.table}] above its keys."
        )
    if edit.value is None:
        inside.pop(edit.key, None)
        # A table that nothing is left in stays where it stands, and none is made.
        return wanted if not edit.table or edit.table in before else before
    inside[edit.key] = tomllib.loads(f"value = {edit.value}")["value"]
    return wanted


def _changed(text: str, edit: Edit) -> str:
    lines = text.splitlines(keepends=True)
    first, last = _part(lines, edit.table)
    for at in range(first, last):
        if re.match(rf"\s*{re.escape(edit.key)}\s*=", lines[at]):
            return "".join([*lines[:at], _replaced(lines[at], edit), *lines[at + 1 :]])
    if edit.value is None:
        raise ValueError("the key is not on a line of its own")
    end = "\r\n" if text.endswith("\r\n") else "\n"
    return _inserted(lines, edit, (first, last), end)


def _part(lines: list[str], table: str | None) -> tuple[int, int]:
    """Answer the lines that keys of a table stand on; behind the end where there is no such table."""
    heads = [at for at, line in enumerate(lines) if _HEAD.match(line)]
    if table is None:
        return 0, heads[0] if heads else len(lines)
    for place, at in enumerate(heads):
        if re.fullmatch(rf"\s*\[\s*{re.escape(table)}\s*\]\s*(#.*)?", lines[at].rstrip("\r\n")):
            return at + 1, heads[place + 1] if place + 1 < len(heads) else len(lines)
    return len(lines), len(lines)


def _replaced(line: str, edit: Edit) -> str:
    """Put the new value in the place of the old one; a comment behind it stays."""
    if edit.value is None:
        return ""
    body = line.rstrip("\r\n")
    start, equals, rest = body.partition("=")
    gap = rest[: len(rest) - len(rest.lstrip())] or " "
    return f"{start}{equals}{gap}{edit.value}{_comment(rest)}{line[len(body) :]}"


def _comment(rest: str) -> str:
    """Find the comment behind a value, with the space before it."""
    for found in re.finditer(r"\s*#", rest):
        try:
            tomllib.loads(f"value ={rest[: found.start()]}")
        except ValueError:
            # Inside of a string.
            continue
        return rest[found.start() :]
    return ""


def _inserted(lines: list[str], edit: Edit, part: tuple[int, int], end: str) -> str:
    """Add a line for a key: below the last one of its part."""
    first, last = part
    lines = [line if line.endswith("\n") else line + end for line in lines]
    new = f"{edit.key} = {edit.value}{end}"
    if edit.table and first == last == len(lines):
        return "".join([*lines, *([end] if lines else []), f"[{edit.table}]{end}", new])
    # What stands right above the next table belongs to that.
    at = last
    while at > first and last < len(lines) and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    while at > first and not lines[at - 1].strip():
        at -= 1
    after = [end] if at < len(lines) and lines[at].strip() else []
    return "".join([*lines[:at], new, *after, *lines[at:]])
