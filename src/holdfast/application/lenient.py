"""Values out of a store for a program that may not know all of their types.

Reducers work on values, not on what is stored of them. A stored value whose class nobody registered here (the
command line never has the application's classes) is passed on as it is, and stored again just so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.domain.errors import CheckpointSchemaError, UnsupportedTypeError
from holdfast.domain.plain import TypeRegistry, to_plain
from holdfast.domain.tree import TAG, copy_tree, has_tags
from holdfast.ports import Packer

#: Tagged objects that are passed on whole if something in them is unknown: what is in a set, or is a key,
#: has to be a value that can be looked up.
_CLOSED = ("obj", "enum", "set", "frozenset", "map")
#: Stands for one while a tree is put together; nothing that is stored has this tag.
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value of a class that is not registered: its tagged object."""

    tree: Any


def revive_known(plain: Any, registry: TypeRegistry) -> Any:
    """Turn a plain tree into values; those of unknown classes stay what they are, as `Unknown`.

    A tree without tags is answered as it is, not copied.
    """
    if not has_tags(plain):
        return plain
    try:
        return registry.revive(plain)
    except CheckpointSchemaError:
        return registry.revive(_shielded(plain, registry), owned=True)


def plain_again(value: Any, registry: TypeRegistry, packer: Packer) -> Any:
    """Turn values into a plain tree: the inverse of `revive_known`."""
    try:
        return packer.unpack(packer.pack(value))
    except UnsupportedTypeError:
        tagging = _Tagging(registry)
        return tagging.put_back(to_plain(value, tagging))


class _Tagging(TypeRegistry):
    """Tags what a registry knows, and numbers what it does not."""

    def __init__(self, registry: TypeRegistry) -> None:
        super().__init__()
        self._registry = registry
        self._trees: list[Any] = []

    def tag(self, value: Any, pack: Callable[[Any], bytes] | None = None) -> dict[str, Any]:
        """Turn a value into its tagged object, one level deep."""
        if type(value) is not Unknown:
            return self._registry.tag(value, pack)
        self._trees.append(value.tree)
        return {TAG: _UNKNOWN, "v": len(self._trees) - 1}

    def put_back(self, plain: Any) -> Any:
        """Put what was not known into the places it had."""
        root = [plain]
        todo: list[Any] = [root]
        while todo:
            owner = todo.pop()
            for key, value in list(owner.items() if type(owner) is dict else enumerate(owner)):
                if type(value) is dict and value.get(TAG) == _UNKNOWN:
                    owner[key] = self._trees[value["v"]]
                elif type(value) is dict or type(value) is list:
                    todo.append(value)
        return root[0]


def _shielded(plain: Any, registry: TypeRegistry) -> Any:
    """Copy a plain tree, what is unknown wrapped so that nothing looks into them."""
    root = [copy_tree(plain)]
    todo: list[Any] = [root]
    while todo:
        owner = todo.pop()
        for key, value in list(owner.items() if type(owner) is dict else enumerate(owner)):
            if type(value) is dict and value.get(TAG) in _CLOSED and not _is_known(value, registry):
                owner[key] = Unknown(value)
            elif type(value) is dict or type(value) is list:
                todo.append(value)
    return root[0]


def _is_known(tagged: dict[str, Any], registry: TypeRegistry) -> bool:
    try:
        registry.revive(tagged)
    except CheckpointSchemaError:
        return False
    return True
