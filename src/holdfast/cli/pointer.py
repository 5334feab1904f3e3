"""Pointers as the command line takes them: what is wrong with one ends the command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.cli.exits import Exit, Failure
from holdfast.domain import pointer as pointers
from holdfast.domain.errors import CheckpointNotFoundError, InvalidIdError


def parse_pointer(text: str) -> tuple[str, ...]:
    """Take a pointer apart; the empty one means the whole."""
    try:
        return pointers.parse_pointer(text)
    except InvalidIdError as wrong:
        raise Failure("wrong_usage", Exit.USAGE, wrong.message, place=wrong.place, hint=wrong.hint) from None


def look_up(tree: Any, pointer: Sequence[str]) -> Any:
    """Find the value that a pointer means, or say which step leads nowhere."""
    try:
        return pointers.look_up(tree, pointer)
    except CheckpointNotFoundError as wrong:
        raise no_such_place(wrong.message, wrong.place, wrong.hint) from None


def no_such_place(message: str, place: str, hint: str = "") -> Failure:
    """Say that a state has nothing there."""
    return Failure("no_such_place", Exit.NOT_FOUND, message, place=place, hint=hint)
