"""What a run is given on the command line: a file, a JSON object, or single values."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from holdfast.domain.json_reading import read_json

_PAIR = re.compile(r"([A-Za-z_][\w.-]*)=(.*)", re.DOTALL)


def read_inputs(texts: Iterable[str], option: str = "--input") -> dict[str, Any]:
    """Put together what was given, in its order: of two values with one name the later one counts."""
    inputs: dict[str, Any] = {}
    for text in texts:
        inputs |= _read(text, option)
    return inputs


def read_pairs(texts: Iterable[str], option: str) -> dict[str, Any]:
    """Read single values only: `key=value`, the value as JSON where it is some, else as text."""
    pairs: dict[str, Any] = {}
    for text in texts:
        found = _PAIR.fullmatch(text)
        if found is None:
            raise click.UsageError(f"{option} {text}: write key=value")
        pairs[found[1]] = read_value(found[2])
    return pairs


def read_value(text: str) -> Any:
    """Read a value as JSON where it is some, else as the text it is."""
    try:
        return read_json(text)
    except ValueError:
        return text


def read_answer(text: str, option: str) -> Any:
    """Read a value that is given for good: what begins as JSON does and is none was not meant as text.

    Raises:
        click.UsageError: it is such.
    """
    answer = read_value(text)
    if answer is text and text.lstrip().startswith(("{", "[")):
        raise click.UsageError(f"{option}: that is no JSON; put text that begins so into double quotes")
    return answer


def _read(text: str, option: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        return _object(text, option)
    if _PAIR.fullmatch(text):
        return read_pairs([text], option)
    if text == "-":
        return _object(sys.stdin.read(), f"{option} -")
    try:
        return _object(Path(text).read_text(encoding="utf-8"), f"{option} {text}")
    except FileNotFoundError:
        known = "It is no JSON object and no key=value either."
        raise click.UsageError(f"{option}: there is no file {text}. {known}") from None
    except (OSError, UnicodeDecodeError) as fault:
        raise click.UsageError(f"{option}: {text} cannot be read ({fault})") from None


def _object(text: str, place: str) -> dict[str, Any]:
    try:
        read = read_json(text)
    except ValueError as fault:
        raise click.UsageError(f"{place}: that is no JSON ({fault})") from None
    if not isinstance(read, dict):
        raise click.UsageError(f"{place}: that is no JSON object")
    return read
