"""What stands in place of a secret: `[REDACTED:kind:hmac8]`."""

from __future__ import annotations

import hmac
import re
from typing import Any

from holdfast.domain.errors import ConfigError

KEY_BYTES_MIN = 16

_MARK = "[REDACTED:"
_PLACEHOLDER = re.compile("\\[REDACTED:[a-z0-9-]{1,40}:[0-9a-f]{8}\\]")
_MAC_BYTES = 4


class Placeholders:
    """Makes placeholders under one key: equal secrets get equal digits, and nobody without it can guess."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if len(key) < KEY_BYTES_MIN:
            raise ConfigError(
                f"the key for redaction has {len(key)} bytes",
                hint=f"Use {KEY_BYTES_MIN} random bytes or more.",
            )
        self._key = key

    def make(self, kind: str, secret: bytes) -> str:
        """Make the placeholder of a secret."""
        return f"{_MARK}{kind}:{hmac.digest(self._key, secret, 'sha256')[:_MAC_BYTES].hex()}]"


def spans(text: str) -> list[tuple[int, int]]:
    """Find the placeholders in a text."""
    return [found.span() for found in _PLACEHOLDER.finditer(text)] if _MARK in text else []


def masked(text: str) -> str:
    """Blot out the placeholders of a text, letter by letter, with what no secret holds."""
    return _PLACEHOLDER.sub(lambda found: "\x00" * len(found[0]), text) if _MARK in text else text


def is_placeholder(text: str) -> bool:
    """Tell whether a text is one placeholder and nothing else."""
    return _PLACEHOLDER.fullmatch(text) is not None


def redacted_paths(tree: Any) -> list[list[str | int]]:
    """Name the places of a plain tree that hold a placeholder, in values or keys."""
    paths: list[list[str | int]] = []
    todo: list[tuple[Any, tuple[Any, ...] | None]] = [(tree, None)]
    while todo:
        value, link = todo.pop()
        if type(value) is dict:
            todo += [(item, (link, key)) for key, item in reversed(value.items())]
            paths += [steps((link, key)) for key in value if spans(key)]
        elif type(value) is list:
            todo += [(item, (link, index)) for index, item in reversed(list(enumerate(value)))]
        elif spans(_readable(value)):
            paths.append(steps(link))
    return paths


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
