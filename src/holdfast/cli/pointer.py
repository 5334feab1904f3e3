"""JSON Pointers (RFC 6901), which name a place in a state: `/messages/0/content`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.cli.exits import Exit, Failure


def parse_pointer(text: str) -> tuple[str, ...]:
    """Take a pointer apart; the empty one means the whole."""
    if text and not text.startswith("/"):
        raise Failure(
            "wrong_usage",
            Exit.USAGE,
            "a pointer begins with a slash",
            place=text,
            hint="For example /messages/0.",
        )
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def step_into(value: Any, key: str) -> Any:
    """Go one step down in a plain tree.

    Raises:
        KeyError: if there is nothing.
    """
    if isinstance(value, dict):
        return value[key]
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        return value[int(key)]
    raise KeyError(key)


def look_up(tree: Any, pointer: Sequence[str]) -> Any:
    """Find the value that a pointer means, or say which step leads nowhere."""
    value = tree
    for depth, key in enumerate(pointer):
        try:
            value = step_into(value, key)
        except KeyError:
            place = pointer_text(pointer[: depth + 1])
            raise Failure(
                "no_such_place",
                Exit.NOT_FOUND,
                "the state has no such place",
                place=place,
                hint=_there(value),
            ) from None
    return value


def put_at(tree: Any, pointer: Sequence[str], value: Any) -> None:
    """Set what a pointer means: a key, or an item of a list; `-` means one more item."""
    owner = look_up(tree, pointer[:-1])
    key = pointer[-1]
    if isinstance(owner, dict):
        owner[key] = value
    elif isinstance(owner, list) and key == "-":
        owner.append(value)
    elif isinstance(owner, list) and key.isdecimal() and int(key) < len(owner):
        owner[int(key)] = value
    else:
        raise Failure(
            "no_such_place",
            Exit.NOT_FOUND,
            "the state has no such place",
            place=pointer_text(pointer),
            hint=_there(owner),
        )


def pointer_text(steps: Sequence[str | int]) -> str:
    """Write steps as a pointer."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def _there(value: Any) -> str:
    if isinstance(value, dict):
        keys = list(value)
        more = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
        return f"There are {', '.join(keys[:8])}{more}." if keys else "There is an empty object."
    if isinstance(value, list):
        return f"There is a list of {len(value)} items."
    return f"There is no object and no list, but {type(value).__name__}."
