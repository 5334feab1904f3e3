"""What is different between two states: edits of objects and lists, as a patch or as changes for people."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.domain import plainjson
from holdfast.domain.align import Splice, align
from holdfast.domain.pointer import follow, pointer_text
from holdfast.domain.tree import NOTHING, TAG

Path = tuple[str | int, ...]

#: With more edits than this the whole is said to be replaced.
EDITS_MAX = 50_000
#: Deeper than this, what differs is replaced and not looked into.
_DEPTH_MAX = 32
#: A value that went here and came there was moved, unless it is so short that others look the same.
_MOVED_BYTES_MIN = 12
_LONG_TEXT_CHARS = 120
_TEXT_CHARS_MAX = 200_000
_TEXT_LINES_MAX = 400
_LINE_CHARS_MAX = 500
#: By one of these, if both have it, people tell items of a list apart.
_NAMES = ("id", "uuid", "key", "name", "step_id")


@dataclass(frozen=True, slots=True)
class Edit:
    """One step from an old tree to a new one, to be done in order.

    Attributes:
        path: where, in the tree as it is by then.
        old_path: where that is, or was, in the old tree.
    """

    op: Literal["add", "remove", "replace"]
    path: Path
    old_path: Path
    old: Any = None
    new: Any = None


@dataclass(frozen=True, slots=True)
class Change:
    """A difference, for people.

    Attributes:
        kind: added, removed, changed, moved or grew.
        pointer: where: in the new state, or in the old one where it was removed.
        source: where it was moved from, in the old state.
        edit: what was done; that of what moved holds the value.
        text: what is different inside a long text, as unified lines.
    """

    kind: Literal["added", "removed", "changed", "moved", "grew"]
    pointer: str
    edit: Edit
    source: str | None = None
    text: str | None = None


class _TooMany(Exception):
    """Ends a comparison that nobody could read."""


def edits(old: Any, new: Any, ignore: Sequence[Sequence[str]] = (), path: Path = ()) -> list[Edit]:
    """Find the edits that turn one plain tree into another, but for places that are to be ignored.

    Args:
        path: where both stand in the state.
    """
    found = list[Edit]()
    try:
        for edit in _Comparison(ignore).values(old, new, path, path, 0):
            found.append(edit)
            if len(found) > EDITS_MAX:
                raise _TooMany
    except _TooMany:
        return [Edit("replace", path, path, old, new)]
    return found


def edits_at(old: Any, new: Any, pointer: Sequence[str]) -> list[Edit]:
    """Find the edits that make one place of a plain tree what it is in another."""
    was, path = follow(old, pointer)
    now, new_path = follow(new, pointer)
    if now is NOTHING:
        return [] if was is NOTHING else [Edit("remove", path, path, old=was)]
    if was is NOTHING:
        return [Edit("add", new_path, new_path, new=now)]
    return edits(was, now, path=path)


def patch(found: Sequence[Edit]) -> list[dict[str, Any]]:
    """Write edits as JSON Patch (RFC 6902), values as plain trees."""
    return [_step(edit) for edit in found]


def _step(edit: Edit) -> dict[str, Any]:
    step: dict[str, Any] = {"op": edit.op, "path": pointer_text(edit.path)}
    return step if edit.op == "remove" else {**step, "value": edit.new}


def changes(found: Sequence[Edit]) -> list[Change]:
    """Tell edits as people see them: what only went elsewhere was moved, and text may have grown."""
    moved = _moves(found)
    told = list[Change]()
    gone = {id(source) for source in moved.values()}
    for edit in found:
        if id(edit) in moved:
            source = pointer_text(moved[id(edit)].old_path)
            told.append(Change("moved", pointer_text(edit.path), edit, source))
        elif id(edit) not in gone:
            told.append(_change(edit))
    return told


def _change(edit: Edit) -> Change:
    if edit.op == "add":
        return Change("added", pointer_text(edit.path), edit)
    if edit.op == "remove":
        return Change("removed", pointer_text(edit.old_path), edit)
    pointer = pointer_text(edit.path)
    if type(edit.old) is str and type(edit.new) is str:
        if edit.old and edit.new.startswith(edit.old):
            return Change("grew", pointer, edit)
        return Change("changed", pointer, edit, text=_unified(edit.old, edit.new))
    return Change("changed", pointer, edit)


def _moves(found: Sequence[Edit]) -> dict[int, Edit]:
    """Pair what was added with what was removed elsewhere and is the same, each once."""
    removed: defaultdict[bytes, list[Edit]] = defaultdict(list)
    for edit in found:
        if edit.op == "remove":
            removed[plainjson.dumps(edit.old)].append(edit)
    moved = dict[int, Edit]()
    for edit in found if removed else ():
        if edit.op != "add":
            continue
        data = plainjson.dumps(edit.new)
        for place, source in enumerate(removed.get(data, ())):
            if len(data) >= _MOVED_BYTES_MIN or _are_in_one_list(source, edit):
                moved[id(edit)] = removed[data].pop(place)
                break
    return moved


def _are_in_one_list(one: Edit, other: Edit) -> bool:
    return one.path[:-1] == other.path[:-1] and type(one.path[-1]) is int and type(other.path[-1]) is int


def _unified(old: str, new: str) -> str | None:
    """Show two long texts line by line; None where they are short, or too long to be compared."""
    longest = max(len(old), len(new))
    if not ("\n" in old or "\n" in new or longest > _LONG_TEXT_CHARS) or longest > _TEXT_CHARS_MAX:
        return None
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > 10 * _TEXT_LINES_MAX:
        return None
    shown = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    cut = [line[:_LINE_CHARS_MAX] for line in shown[:_TEXT_LINES_MAX]]
    return "\n".join([*cut, "..."] if len(shown) > _TEXT_LINES_MAX else cut)


class _Comparison:
    """Walks through two trees side by side."""

    def __init__(self, ignore: Sequence[Sequence[str]]) -> None:
        self._ignored = frozenset(tuple(pointer) for pointer in ignore)

    def values(self, old: Any, new: Any, path: Path, old_path: Path, depth: int) -> Iterator[Edit]:
        """Compare two values that stand in one place."""
        if self._is_ignored(path) or is_same(old, new):
            return
        if depth < _DEPTH_MAX and type(old) is type(new) is list:
            yield from self._lists(old, new, path, old_path, depth)
        elif depth < _DEPTH_MAX and type(old) is type(new) is dict and old.get(TAG) == new.get(TAG):
            yield from self._objects(old, new, path, old_path, depth)
        else:
            yield Edit("replace", path, old_path, old, new)

    def _objects(
        self, old: dict[str, Any], new: dict[str, Any], path: Path, old_path: Path, depth: int
    ) -> Iterator[Edit]:
        for key, value in old.items():
            if key not in new and not self._is_ignored((*path, key)):
                yield Edit("remove", (*path, key), (*old_path, key), old=value)
        for key, value in new.items():
            if key in old:
                yield from self.values(old[key], value, (*path, key), (*old_path, key), depth + 1)
            elif not self._is_ignored((*path, key)):
                yield Edit("add", (*path, key), (*old_path, key), new=value)

    def _is_ignored(self, path: Path) -> bool:
        return bool(self._ignored) and tuple(map(str, path)) in self._ignored

    def _lists(
        self, old: list[Any], new: list[Any], path: Path, old_path: Path, depth: int
    ) -> Iterator[Edit]:
        packed, packed_new = ([plainjson.dumps(item) for item in items] for items in (old, new))
        shift = 0
        for splice in align(packed, packed_new):
            start = splice.at - shift
            gone = old[start : start + splice.remove]
            come = new[splice.start : splice.stop]
            yield from self._spliced(splice, gone, come, path, (*old_path, start), depth)
            shift += len(come) - len(gone)

    def _spliced(
        self, splice: Splice, gone: list[Any], come: list[Any], path: Path, old_start: Path, depth: int
    ) -> Iterator[Edit]:
        """Compare items in pairs where they are versions of each other; take out and put in the others."""
        above, first = old_start[:-1], int(old_start[-1])
        both = min(len(gone), len(come))
        is_even = len(gone) == len(come)
        for place in range(both):
            was, now = gone[place], come[place]
            here, there = (*path, splice.at + place), (*above, first + place)
            if _is_version(was, now, is_even=is_even):
                yield from self.values(was, now, here, there, depth + 1)
            else:
                yield Edit("remove", here, there, old=was)
                yield Edit("add", here, there, new=now)
        for place in range(both, len(gone)):
            yield Edit("remove", (*path, splice.at + both), (*above, first + place), old=gone[place])
        for place in range(both, len(come)):
            yield Edit("add", (*path, splice.at + place), (*above, first + both), new=come[place])


def is_same(old: Any, new: Any) -> bool:
    """Tell whether two plain trees are the same, down to the types."""
    if type(old) is not type(new):
        return False
    try:
        # Python calls 1 and True equal, so that it says so proves nothing; what it calls unequal is.
        if type(old) in (dict, list, str, bytes) and old != new:
            return False
    except RecursionError:
        pass
    return plainjson.dumps(old) == plainjson.dumps(new)


def _is_version(was: Any, now: Any, *, is_even: bool) -> bool:
    """Tell whether one item of a list became another, and did not only take its place."""
    if type(was) is not type(now):
        return False
    if type(was) is not dict:
        return is_even
    for name in _NAMES:
        if name in was and name in now:
            return is_same(was[name], now[name])
    shared = sum(1 for key in was if key in now and is_same(was[key], now[key]))
    return 2 * shared >= max(len(was), len(now))
