"""What a function was given: what of it can be kept, and a digest that tells two calls apart."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.errors import CheckpointWriteError, GraphChangedError
from holdfast.domain.plain import TypeRegistry, to_plain

_DIGEST_CHARS = 16


def storable(arguments: Mapping[str, Any], types: TypeRegistry) -> dict[str, Any]:
    """Answer the arguments that a store can hold; a connection or `self` is of this process only."""
    return {name: value for name, value in arguments.items() if _plain(value, types) is not None}


def digest_of(arguments: Mapping[str, Any], types: TypeRegistry) -> str:
    """Answer the same text for the same arguments, in every process; what cannot be stored does not count."""
    found = hashlib.sha256()
    for name in sorted(arguments):
        plain = _plain(arguments[name], types)
        if plain is not None:
            found.update(b"%d %d " % (len(name.encode("utf-8", "surrogatepass")), len(plain)))
            found.update(name.encode("utf-8", "surrogatepass") + plain)
    return found.hexdigest()[:_DIGEST_CHARS]


def numbered(positional: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
    """Name the arguments of a call by their place, where they have no name."""
    return {**{str(place): value for place, value in enumerate(positional)}, **named}


def check_given(what: str, known: Mapping[str, Any], given: str | None, place: str) -> None:
    """Make sure that something was recorded for what it is given now; journals of before do not say.

    Raises:
        GraphChangedError: it was recorded for other arguments.
    """
    if given is None or known.get("given") in (None, given):
        return
    raise GraphChangedError(
        f"{what} was recorded for other arguments than it is given now",
        place=place,
        hint="Do the same in the same order when an agent runs again, with the same arguments,"
        " or say what each one is known by: key=...",
    )


def _plain(value: Any, types: TypeRegistry) -> bytes | None:
    try:
        return plainjson.dumps(to_plain(value, types))
    except CheckpointWriteError:
        return None
