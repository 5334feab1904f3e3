"""JSON Pointers (RFC 6901), which name a place in a state: `/messages/0/content`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from holdfast.domain.errors import CheckpointNotFoundError, InvalidIdError
from holdfast.domain.tree import NOTHING

#: An index has no zeros in front, and no list is longer than this many digits.
_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")
_WRONG_ESCAPE = re.compile(r"~(?![01])")
_NAMED_MAX = 8


def parse_pointer(text: str) -> tuple[str, ...]:
    """Take a pointer apart; the empty one means the whole.

    Raises:
        InvalidIdError: it is none.
    """
    if (text and not text.startswith("/")) or _WRONG_ESCAPE.search(text):
        raise InvalidIdError(
            "this is no JSON Pointer",
            place=ascii(text)[:80],
            hint="Begin with a slash, and write ~1 for a slash in a name, ~0 for a tilde: /messages/0.",
        )
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def pointer_text(steps: Sequence[str | int]) -> str:
    """Write steps as a pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def step_into(value: Any, key: str) -> Any:
    """Go one step down in a plain tree.

    Raises:
        KeyError: there is nothing.
    """
    if isinstance(value, dict):
        return value[key]
    if isinstance(value, list) and _INDEX.fullmatch(key) and int(key) < len(value):
        return value[int(key)]
    raise KeyError(key)


def look_up(tree: Any, pointer: Sequence[str]) -> Any:
    """Find what a pointer means.

    Raises:
        CheckpointNotFoundError: it leads nowhere; says from which step on.
    """
    value = tree
    for depth, key in enumerate(pointer):
        try:
            value = step_into(value, key)
        except KeyError:
            place = pointer_text(pointer[: depth + 1])
            raise CheckpointNotFoundError(
                "the state has no such place", place=place, hint=_there(value)
            ) from None
    return value


def follow(tree: Any, pointer: Sequence[str]) -> tuple[Any, tuple[str | int, ...]]:
    """Answer what a pointer means, NOTHING if it leads nowhere, and its steps with indexes as numbers."""
    steps: tuple[str | int, ...] = ()
    for key in pointer:
        steps += (int(key) if isinstance(tree, list) and _INDEX.fullmatch(key) else key,)
        try:
            tree = step_into(tree, key)
        except KeyError:
            return NOTHING, (*steps, *pointer[len(steps) :])
    return tree, steps


def without(tree: Any, pointer: Sequence[str]) -> Any:
    """Copy the way to a place, and leave that out; an item of a list becomes None, so that others stay."""
    key, *rest = pointer
    try:
        inner = step_into(tree, key)
    except KeyError:
        return tree
    if isinstance(tree, list):
        place = int(key)
        return [*tree[:place], without(inner, rest) if rest else None, *tree[place + 1 :]]
    if rest:
        return {**tree, key: without(inner, rest)}
    return {name: value for name, value in tree.items() if name != key}


def _there(value: Any) -> str:
    if isinstance(value, dict):
        names = ", ".join(list(value)[:_NAMED_MAX])
        more = f" and {len(value) - _NAMED_MAX} more" if len(value) > _NAMED_MAX else ""
        return f"There are {names}{more}." if value else "There is an empty object."
    if isinstance(value, list):
        return f"There is a list of {len(value)} items."
    return "There is neither an object nor a list."
