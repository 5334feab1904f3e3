"""Secrets beside their names: `["Authorization", "..."]`, `{"name": "DB_PASSWORD", "value": "..."}`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from holdfast.domain import delta
from holdfast.domain.delta import Operation
from holdfast.domain.secret_keys import Around, SecretKeys
from holdfast.domain.secret_names import NAMES, VALUES
from holdfast.domain.tree import TAG

#: Gives the value at a path of the new state, as a plain tree.
Grown = Callable[[Sequence[str | int]], Any]
Place = tuple[str | int, ...]

_MEMBERS = frozenset({*NAMES, *VALUES})
#: Numbers beside a name are counts and scores far more often than secrets.
_HIDDEN_TYPES = frozenset({str, bytes, list, dict})


def beside(around: Around, kind: str | None) -> Around:
    """Say what is around a value whose name stands beside it."""
    if kind is None or around.kind is not None or (around.in_logprobs and kind == "token"):
        return around
    return around._replace(kind=kind)


def kind_of_second(items: Any, under: str | int | None, keys: SecretKeys) -> str | None:
    """Tell which kind of secret the second of two items is.

    Args:
        items: the list.
        under: the key or the index that the list stands under.
        keys: what is known about names.
    """
    if type(items) is not list or len(items) != 2 or type(items[1]) not in _HIDDEN_TYPES:
        return None
    return _announced(items, under, keys)


def kind_of_value(fields: dict[str, Any], value: Any, keys: SecretKeys) -> str | None:
    """Tell which kind of secret the value of an object is by the name that the object gives it."""
    if type(value) not in _HIDDEN_TYPES:
        return None
    kinds = (keys.named(fields[name]) for name in NAMES if name in fields)
    return next((kind for kind in kinds if kind), None)


def _announced(items: list[Any], under: str | int | None, keys: SecretKeys) -> str | None:
    """Tell what a list of two would hold, by its first item or by the key above it."""
    if type(under) is int:
        return keys.named(items[0])
    return "password" if type(under) is str and keys.known(under).is_login else None


class PairedPaths:
    """Looks beside the paths of operations, in the new state."""

    def __init__(self, keys: SecretKeys, grown: Grown) -> None:
        self._keys = keys
        self._grown = grown

    def concern(self, op: Operation) -> bool:
        """Tell whether an operation may change a value beside a name, or the name."""
        path = op["path"]
        if op["op"] == "splice" and path and type(path[-1]) is int:
            return True
        # Asked for every operation: a look at the path settles it for most.
        if len(path) > 1 and _enters_list_in_list(path):
            return True
        return not _MEMBERS.isdisjoint(path) and self._is_beside(path)

    def kind(self, path: Sequence[str | int], at: int) -> str | None:
        """Tell which kind of secret a step leads to, by what stands beside it."""
        step = path[at]
        if step == 1 and type(step) is int:
            under = self.under(path[:at])
            return kind_of_second(self._grown(path[:at]), under, self._keys) if self._tells(under) else None
        if step in VALUES:
            fields = self._beside(path[: at + 1], (*NAMES, str(step)))
            return kind_of_value(fields, fields.get(str(step)), self._keys)
        return None

    def under(self, path: Sequence[str | int]) -> str | int | None:
        """Give the key or the index that the list at a path stands under; a tuple's tag is no key."""
        if not path or path[-1] != "v":
            return path[-1] if path else None
        owner = self._grown(path[:-1])
        is_tuple = type(owner) is dict and owner.get(TAG) == "tuple"
        return path[-2] if is_tuple and len(path) > 1 else None

    def carried_whole(self, ops: Sequence[Operation]) -> list[Operation]:
        """Let operations carry the values beside names that change, since what is stored of them may too."""
        told = {tuple(op["path"]) for op in ops if op["op"] == "set"}
        places = [place for place in dict.fromkeys(self._renamed(ops)) if place not in told]
        if not places:
            return list(ops)
        kept = [op for op in ops if not any(_is_below(op["path"], place) for place in places)]
        return kept + [delta.set_value(place, self._grown(place)) for place in places]

    def _renamed(self, ops: Iterable[Operation]) -> Iterable[Place]:
        """Find the values beside names that operations change, and lists that become or were pairs."""
        lists: dict[Place, list[Operation]] = {}
        for op in ops:
            path = tuple(op["path"])
            if op["op"] == "splice":
                lists.setdefault(path, []).append(op)
            elif path and path[-1] in NAMES:
                values = self._beside(path, VALUES)
                yield from ((*path[:-1], key) for key in values if type(values[key]) in _HIDDEN_TYPES)
            elif path and path[-1] == 0 and type(path[-1]) is int:
                lists.setdefault(path[:-1], []).append(op)
        for path, changes in lists.items():
            if self._tells(under := self.under(path)):
                yield from self._changed_pair(path, changes, under)

    def _changed_pair(
        self, path: Place, changes: Sequence[Operation], under: str | int | None
    ) -> Iterable[Place]:
        items = self._grown(path)
        if type(items) is not list:
            return
        splices = [op for op in changes if op["op"] == "splice"]
        count = len(items) - sum(len(op["insert"]) - op.get("remove", 0) for op in splices)
        if len(items) != 2 and count != 2:
            return
        if not splices:
            if type(items[1]) in _HIDDEN_TYPES:
                yield (*path, 1)
        elif any(op.get("at", 0) == 0 for op in changes) or _announced(items, under, self._keys):
            yield path

    def _is_beside(self, path: Sequence[str | int]) -> bool:
        """Tell whether a path leads through a value that a name stands beside, or to such a name."""
        if path[-1] in NAMES and self._beside(path, VALUES):
            return True
        return any(step in VALUES and self.kind(path, at) for at, step in enumerate(path))

    def _tells(self, under: str | int | None) -> bool:
        return type(under) is int or (type(under) is str and self._keys.known(under).is_login)

    def _beside(self, path: Sequence[str | int], members: Sequence[str]) -> dict[str, Any]:
        """Read members of the object that a path leads into, one by one: the others may be large."""
        found = {}
        for member in members:
            try:
                found[member] = self._grown([*path[:-1], member])
            except (KeyError, TypeError):
                continue
        return found


def _is_below(path: Sequence[str | int], place: Place) -> bool:
    return tuple(path[: len(place)]) == place


def _enters_list_in_list(path: Sequence[str | int]) -> bool:
    """Tell whether a path leads to one of the first two items of a list inside a list."""
    is_item = False
    for step in path:
        if type(step) is not int:
            is_item = False
        elif is_item and step < 2:
            return True
        else:
            is_item = True
    return False
