"""What agents say wrongly, refused with what to do instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.domain.errors import InvalidStateError
from holdfast.execution.effects import Unknown


def check_share(value: Any, place: str) -> None:
    """Refuse what tells of nobody how far it is.

    Raises:
        InvalidStateError: it is no number from 0 to 1.
    """
    if not (isinstance(value, int | float) and 0 <= value <= 1):
        raise InvalidStateError(f"{value!r} is no progress", place=place, hint="Give 0 to 1.")


def check_remembered(values: Mapping[str, Any], place: str) -> None:
    """Refuse to put something in the place of what the run was given.

    Raises:
        InvalidStateError: one is called `inputs`.
    """
    if "inputs" in values:
        raise InvalidStateError(
            "the inputs of a run stay what they were", place=place, hint="Remember it under another name."
        )


def name_of(function: Any, place: str) -> str:
    """Answer what a function is called that shall run as an agent.

    Raises:
        InvalidStateError: it is no function.
    """
    if not callable(function):
        raise InvalidStateError(
            f"{function!r} is no function", place=place, hint="Give the function itself, and its item."
        )
    return str(getattr(function, "__name__", type(function).__name__))


def policy_of(unknown: Any, place: str) -> Unknown:
    """Answer the policy that is meant.

    Raises:
        InvalidStateError: there is none of that name.
    """
    try:
        return Unknown(unknown)
    except ValueError:
        known = ", ".join(map(str, Unknown))
        raise InvalidStateError(
            f"{unknown!r} is no policy for what is unknown", place=place, hint=f"Known are: {known}."
        ) from None
