"""Whose a change is: what the events make of a state, beside what its next checkpoint holds.

Three states are compared: the one before, that with the events replayed onto it, and the stored one. Where
the last two differ somebody else had a hand in it, or the events tell something else than what happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.domain.align import align
from holdfast.domain.tree import NOTHING, TAG
from holdfast.ports import Packer

Path = tuple[str | int, ...]


class Kind(StrEnum):
    """How the events and a stored state differ in one place."""

    #: No event touched the place: the caller changed its state itself.
    UNEXPLAINED = "unexplained"
    #: An event added something that the stored state does not have: the caller keeps no account of it.
    LEFT_OUT = "left_out"
    #: An event says one thing and the stored state another.
    DIVERGED = "diverged"


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One place where the events and a stored state differ; `NOTHING` is no value."""

    kind: Kind
    path: Path
    before: Any
    replayed: Any
    stored: Any
    #: The last event that touched the place; None where none did.
    event_seq: int | None = None


def explain(before: Any, replayed: Any, stored: Any, packer: Packer) -> Iterator[Discrepancy]:
    """Find the places where two plain trees differ, given the one that both were made from."""
    return _Comparison(packer).objects(before, replayed, stored, ())


class _Comparison:
    """Compares three trees, part by part where they differ."""

    def __init__(self, packer: Packer) -> None:
        self._pack = packer.pack_plain

    def objects(self, before: Any, replayed: Any, stored: Any, path: Path) -> Iterator[Discrepancy]:
        for key in {**replayed, **stored}:
            was, made, kept = (_member(tree, key) for tree in (before, replayed, stored))
            yield from self._values(was, made, kept, (*path, key))

    def _values(self, before: Any, replayed: Any, stored: Any, path: Path) -> Iterator[Discrepancy]:
        if self._is_same(replayed, stored):
            return
        if _is_object(replayed) and _is_object(stored):
            yield from self.objects(before, replayed, stored, path)
        elif type(replayed) is list and type(stored) is list:
            yield from self._lists(before if type(before) is list else [], replayed, stored, path)
        else:
            yield Discrepancy(self._kind(before, replayed, stored), path, before, replayed, stored)

    def _kind(self, before: Any, replayed: Any, stored: Any) -> Kind:
        if self._is_same(before, replayed):
            return Kind.UNEXPLAINED
        is_left_out = NOTHING in (before, replayed) and self._is_same(before, stored)
        return Kind.LEFT_OUT if is_left_out else Kind.DIVERGED

    def _lists(
        self, before: list[Any], replayed: list[Any], stored: list[Any], path: Path
    ) -> Iterator[Discrepancy]:
        """Compare lists by the items they have in common, so that a window that moved on is just that."""
        old, new, earlier = ([self._pack(item) for item in items] for items in (replayed, stored, before))
        removed, shift = Counter(earlier) - Counter(old), 0
        # Then nothing here is the caller's doing, wherever events moved things to.
        is_as_before = new == earlier
        for splice in align(old, new):
            gone = list(range(splice.at - shift, splice.at - shift + splice.remove))
            shift += splice.stop - splice.start - splice.remove
            come = list(range(splice.start, splice.stop))
            for index, place in _pairs(gone, come, replayed, stored):
                kept = NOTHING if place is None else stored[place]
                was = kept if is_as_before else before[index] if index < len(before) else NOTHING
                yield from self._values(was, replayed[index], kept, (*path, index))
            for place in come:
                # What an event removed and is there still was not put there by anybody.
                is_left = is_as_before or removed[new[place]] > 0
                was, kind = (stored[place], Kind.LEFT_OUT) if is_left else (NOTHING, Kind.UNEXPLAINED)
                yield Discrepancy(kind, (*path, place), was, NOTHING, stored[place])

    def _is_same(self, one: Any, other: Any) -> bool:
        if one is other:
            return True
        if one is NOTHING or other is NOTHING:
            return False
        return self._pack(one) == self._pack(other)


def _member(tree: Any, key: str) -> Any:
    return tree.get(key, NOTHING) if _is_object(tree) else NOTHING


def _is_object(value: Any) -> bool:
    return type(value) is dict and TAG not in value


def _pairs(
    gone: list[int], come: list[int], replayed: list[Any], stored: list[Any]
) -> Iterator[tuple[int, int | None]]:
    """Say which item stands for which: that of its id, or, if as many are left, the next; or none.

    What remains in `come` stands for nothing that was there.
    """
    by_id = {_id(stored[place]): place for place in reversed(come) if _id(stored[place])}
    rest = []
    for index in gone:
        place = by_id.pop(_id(replayed[index]), None)
        if place is None:
            rest.append(index)
        else:
            come.remove(place)
            yield index, place
    if len(rest) == len(come):
        yield from zip(rest, come, strict=True)
        come.clear()
    else:
        yield from ((index, None) for index in rest)


def _id(item: Any) -> str:
    """Name an item by its id, if it has one that names."""
    found = item.get("id") if _is_object(item) else None
    return f"{type(found).__name__} {found}" if type(found) in (str, int) else ""
