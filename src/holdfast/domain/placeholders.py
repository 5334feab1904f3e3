"""What stands in place of a secret: `[REDACTED:kind:hmac8]`."""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable
from typing import Any

from holdfast.domain.errors import ConfigError
from holdfast.domain.msgpack import contains
from holdfast.domain.tree import TAG

KEY_BYTES_MIN = 16

_MARK = "[REDACTED:"
_PLACEHOLDER = re.compile("\\[REDACTED:[a-z0-9-]{1,40}:[0-9a-f]{8}\\]")
_MAC_BYTES = 4
_MARK_BYTES = _MARK.encode()
#: From here on the quicker search is worth its preparation.
_LARGE_BYTES = 64 * 1024
_TAG_BYTES = f'"{TAG}"'.encode()
#: The mark as it shows in JSON inside bytes, which are base64 there: it may begin at any of three places.
_MARKS_IN_BASE64 = tuple(
    base64.b64encode(_MARK_BYTES[skip : skip + (len(_MARK_BYTES) - skip) // 3 * 3]) for skip in (0, 2, 1)
)


#: The key, or what gives it.
Key = bytes | Callable[[], bytes]


class Placeholders:
    """Makes placeholders under one key: equal secrets get equal digits, and nobody without it can guess."""

    __slots__ = ("_key",)

    def __init__(self, key: Key) -> None:
        """Prepare for a key, or for what gives it when the first secret is met."""
        self._key = key if callable(key) else _checked(key)

    def make(self, kind: str, secret: bytes) -> str:
        """Make the placeholder of a secret."""
        if callable(self._key):
            self._key = _checked(self._key())
        return f"{_MARK}{kind}:{hmac.digest(self._key, secret, 'sha256')[:_MAC_BYTES].hex()}]"


def _checked(key: bytes) -> bytes:
    if len(key) < KEY_BYTES_MIN:
        raise ConfigError(
            f"the key for redaction has {len(key)} bytes",
            hint=f"Use {KEY_BYTES_MIN} random bytes or more.",
        )
    return key


def spans(text: str) -> list[tuple[int, int]]:
    """Find the placeholders in a text."""
    return [found.span() for found in _PLACEHOLDER.finditer(text)] if _MARK in text else []


def masked(text: str) -> str:
    """Blot out the placeholders of a text, letter by letter, with what no secret holds."""
    return _PLACEHOLDER.sub(lambda found: "\x00" * len(found[0]), text) if _MARK in text else text


def is_placeholder(text: str) -> bool:
    """Tell whether a text is one placeholder and nothing else."""
    return _PLACEHOLDER.fullmatch(text) is not None


def replace(text: str, fill: Callable[[str], str]) -> str:
    """Put something in place of each placeholder of a text."""
    return _PLACEHOLDER.sub(lambda found: fill(found[0]), text)


def may_hold(data: bytes) -> bool:
    """Tell quickly that JSON, or the bytes of a text, hold no placeholder; True may be a false alarm."""
    if len(data) < _LARGE_BYTES:
        has_mark, has_tag = _MARK_BYTES in data, _TAG_BYTES in data
    else:
        has_mark, has_tag = contains(data, _MARK_BYTES, rare=0), contains(data, _TAG_BYTES, rare=1)
    return has_mark or (has_tag and any(mark in data for mark in _MARKS_IN_BASE64))


def may_show(packed: bytes) -> bool:
    """Tell quickly that MessagePack or CBOR hold no placeholder; True may be a false alarm."""
    return contains(packed, _MARK_BYTES, rare=0) or contains(packed, TAG.encode(), rare=0)


def is_redacted(tree: Any) -> bool:
    """Tell whether a plain tree may hold a placeholder, in values or keys."""
    todo = [tree]
    while todo:
        value = todo.pop()
        if type(value) is dict:
            if value.get(TAG) == "str" and _MARK in unwrapped(value.get("v")):
                return True
            todo += value
            todo += value.values()
        elif type(value) is list:
            todo += value
        elif type(value) is str:
            if _MARK in value:
                return True
        elif type(value) is bytes and _MARK_BYTES in value:
            return True
    return False


def redacted_paths(tree: Any) -> list[list[str | int]]:
    """Name the places of a plain tree that hold a placeholder, in values or keys."""
    paths: list[list[str | int]] = []
    todo: list[tuple[Any, tuple[Any, ...] | None]] = [(tree, None)]
    while todo:
        value, link = todo.pop()
        if type(value) is dict and value.get(TAG) == "str":
            if spans(unwrapped(value.get("v"))):
                paths.append(steps(link))
        elif type(value) is dict:
            todo += [(item, (link, key)) for key, item in reversed(value.items())]
            paths += [steps((link, key)) for key in value if spans(key)]
        elif type(value) is list:
            todo += [(item, (link, index)) for index, item in reversed(list(enumerate(value)))]
        elif spans(_readable(value)):
            paths.append(steps(link))
    return paths


def unwrapped(stored: Any) -> str:
    """Read a text with lone surrogates as it is stored."""
    try:
        return base64.b64decode(stored, validate=True).decode("utf-8", "surrogatepass")
    except (TypeError, ValueError):
        return stored if type(stored) is str else ""


def _readable(value: Any) -> str:
    """Give the text of a string or of bytes; nothing of other values."""
    if type(value) is bytes:
        return value.decode("latin-1")
    return value if type(value) is str else ""


def steps(link: tuple[Any, ...] | None) -> list[str | int]:
    """Write a chain of (steps before, last step) as a list."""
    found = []
    while link is not None:
        link, step = link
        found.append(step)
    return found[::-1]
