"""Restored states that lack secrets: where these were, and what the caller's resolver puts there."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.domain.errors import InvalidStateError, RedactedStateWarning
from holdfast.domain.placeholders import is_placeholder, may_hold, redacted_paths, replace, spans
from holdfast.domain.plain import LoadBlob
from holdfast.domain.tree import TAG
from holdfast.domain.value import value
from holdfast.ports import Packer

#: Given the place of a placeholder as a JSON pointer and the placeholder, answers the secret, or None.
Resolver = Callable[[str, str], Any]

_SHOWN = 10


@value
class Revealed:
    """What became of the placeholders of a tree: pointers of those that stay, and how many were filled."""

    left: tuple[str, ...] = ()
    filled: int = 0

    def warn(self, place: str, stacklevel: int) -> None:
        """Tell the caller about placeholders that stay."""
        if not self.left:
            return
        shown = ", ".join(self.left[:_SHOWN])
        more = f" and {len(self.left) - _SHOWN} more" if len(self.left) > _SHOWN else ""
        said = f"{place} was stored without its secrets; missing: {shown}{more}"
        warnings.warn(RedactedStateWarning(said, self.left), stacklevel=stacklevel + 1)


class WatchedBlobs:
    """Loads blobs, and remembers whether one may hold a placeholder."""

    def __init__(self, load_blob: LoadBlob) -> None:
        self._load_blob = load_blob
        self.is_redacted = False

    def load(self, sha256: str) -> bytes:
        """Load the bytes of a blob."""
        data = self._load_blob(sha256)
        self.is_redacted = self.is_redacted or may_hold(data)
        return data


def reveal(tree: Any, resolver: Resolver | None, packer: Packer) -> Revealed:
    """Fill the placeholders of a plain tree, in place, as far as the resolver knows what was there."""
    paths = redacted_paths(tree)
    if resolver is None or not paths:
        return Revealed(_pointers(tree, paths))
    filling = _Filling(resolver, packer)
    # The deepest first: a key above that is filled changes the way down.
    for path in sorted(paths, key=len, reverse=True):
        filling.fill(tree, path, _pointer(tree, path))
    return Revealed(_pointers(tree, redacted_paths(tree)), filling.count)


class _Filling:
    """Fills placeholders, one place after the other."""

    def __init__(self, resolver: Resolver, packer: Packer) -> None:
        self._resolver = resolver
        self._packer = packer
        self.count = 0

    def fill(self, tree: Any, path: Sequence[Any], pointer: str) -> None:
        """Fill a value, and the key it stands under."""
        owner = tree
        for step in path[:-1]:
            owner = owner[step]
        step = path[-1]
        value = owner[step]
        if type(value) is str:
            owner[step] = self._text(value, pointer)
        elif type(value) is bytes:
            owner[step] = self._bytes(value, pointer)
        if type(step) is str and spans(step):
            name = replace(step, lambda found: self._inside(found, pointer))
            kept = {name if key == step else key: item for key, item in owner.items()}
            owner.clear()
            owner.update(kept)

    def _text(self, text: str, pointer: str) -> Any:
        if not is_placeholder(text):
            return replace(text, lambda found: self._inside(found, pointer))
        found = self._resolver(pointer, text)
        if found is None:
            return text
        self.count += 1
        return self._packer.unpack(self._packer.pack(found))

    def _bytes(self, data: bytes, pointer: str) -> Any:
        text = data.decode("latin-1")
        if not is_placeholder(text):
            filled = replace(text, lambda found: self._inside(found, pointer).encode().decode("latin-1"))
            return filled.encode("latin-1")
        found = self._text(text, pointer)
        return found.encode() if type(found) is str else found

    def _inside(self, placeholder: str, pointer: str) -> str:
        """Fill a placeholder that is a part of a text."""
        found = self._resolver(pointer, placeholder)
        if found is None:
            return placeholder
        if type(found) is not str:
            raise InvalidStateError(
                f"the resolver answered with {type(found).__name__} for a part of a text",
                place=pointer,
                hint="Let it answer a text there, or None.",
            )
        self.count += 1
        return found


def _pointers(tree: Any, paths: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """Write paths as JSON pointers, each once: a key and its value may both hold a placeholder."""
    return tuple(dict.fromkeys(_pointer(tree, path) for path in paths))


def _pointer(tree: Any, path: Sequence[Any]) -> str:
    """Write a path as a JSON pointer (RFC 6901), the way into tagged values left out."""
    words = []
    for step in path:
        is_inner = type(tree) is dict and TAG in tree and step in ("v", "private")
        if not is_inner:
            words.append("/" + str(step).replace("~", "~0").replace("/", "~1"))
        tree = tree[step]
    return "".join(words)
