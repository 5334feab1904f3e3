"""What is masked in a state: where, and as what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.domain.personal import WHAT
from holdfast.domain.placeholders import may_hold, redacted_paths, steps
from holdfast.domain.pointer import pointer_text
from holdfast.domain.tree import TAG

_PERSONAL_BYTES = f'"{WHAT}"'.encode()


@dataclass(frozen=True, slots=True)
class Masks:
    """The masked places of a tree, as steps: secrets that were hidden, and values of people under seal."""

    hidden: list[list[str | int]]
    sealed: list[list[str | int]]

    def pointers(self, above: str) -> list[str]:
        """Write the places as pointers, in the order of the state as far as they are of one sort."""
        return [above + pointer_text(path) for path in (*self.hidden, *self.sealed)]


def masks_of(tree: Any) -> Masks:
    """Find what is masked in a plain tree."""
    return Masks(redacted_paths(tree), sealed_paths(tree))


def sealed_paths(tree: Any) -> list[list[str | int]]:
    """Name the places of a plain tree that hold a person's value."""
    paths: list[list[str | int]] = []
    todo: list[tuple[Any, tuple[Any, ...] | None]] = [(tree, None)]
    while todo:
        value, link = todo.pop()
        if is_personal(value):
            paths.append(steps(link))
        elif type(value) is dict:
            todo += [(item, (link, key)) for key, item in reversed(value.items())]
        elif type(value) is list:
            todo += [(item, (link, index)) for index, item in reversed(list(enumerate(value)))]
    return paths


def is_personal(value: Any) -> bool:
    """Tell whether this is a person's value as it is stored."""
    return type(value) is dict and value.get(TAG) == WHAT


def has_masks(value: Any, data: bytes) -> bool:
    """Tell whether something is masked in a value, given its JSON: most values say no by that alone."""
    is_hiding = may_hold(data) and bool(redacted_paths(value))
    return is_hiding or (_PERSONAL_BYTES in data and bool(sealed_paths(value)))
