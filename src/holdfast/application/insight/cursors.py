"""Where a listing goes on: the key of the last row, as one word that nobody needs to understand."""

from __future__ import annotations

import base64
import binascii
import json

from holdfast.domain.errors import InvalidIdError
from holdfast.domain.json_reading import read_json

Key = tuple[str | int, ...]


def write_cursor(listing: str, key: Key) -> str:
    """Write the key of the last row that was listed."""
    return base64.urlsafe_b64encode(json.dumps([listing, *key]).encode()).decode().rstrip("=")


def read_cursor(listing: str, text: str, shape: tuple[type, ...]) -> Key:
    """Read where to go on.

    Raises:
        InvalidIdError: it is none, or that of another listing.
    """
    try:
        found = read_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError):
        found = None
    if isinstance(found, list) and found[:1] == [listing] and tuple(map(type, found[1:])) == shape:
        return tuple(found[1:])
    raise InvalidIdError(
        "this is no cursor of this listing",
        place=ascii(text)[:40],
        hint="Send `next_cursor` of the page before as it is, or none.",
    )
