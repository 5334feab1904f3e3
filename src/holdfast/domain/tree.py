"""Walking plain trees, at any depth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

#: The key that makes an object a tagged one.
TAG = "$hf"


class Nothing:
    """Stands where a tree has no value."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING = Nothing()


def at_path(tree: Any, path: Iterable[str | int]) -> Any:
    """Answer what stands at a place, or `NOTHING`."""
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return NOTHING
    return tree


def copy_tree(plain: Any) -> Any:
    """Copy the objects and lists of a plain tree, at any depth."""
    root = [plain]
    todo: list[Any] = [root]
    while todo:
        owner = todo.pop()
        for key, value in owner.items() if type(owner) is dict else enumerate(owner):
            if type(value) is dict or type(value) is list:
                owner[key] = value = value.copy()
                todo.append(value)
    return root[0]


def has_tags(plain: Any) -> bool:
    """Whether a plain tree holds a tagged object anywhere."""
    todo: list[Any] = [plain]
    while todo:
        owner = todo.pop()
        if type(owner) is dict:
            if TAG in owner:
                return True
            owner = owner.values()
        todo += [value for value in owner if type(value) is dict or type(value) is list]
    return False
