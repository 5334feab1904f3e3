"""What is told of the channels of a checkpoint, as two texts: names, and numbers that stand for them.

Nearly all of it changes with each checkpoint, but for the names: those are told once for a thread. Nor does a
name stand before a text that is said of it. A channel may be called `token`, and a text behind such a name is
hidden as a secret; a version is none, and a thread without it could not go on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from holdfast.domain.errors import CheckpointSchemaError
from holdfast.domain.json_reading import read_json
from holdfast.integrations.langgraph_names import read_name


def _encoder() -> Callable[[Any], str]:
    """Make the standard library's encoder once: `JSONEncoder.encode` makes a new one for every call."""
    parts = vars(json.encoder)
    if parts["c_make_encoder"] is None:
        return json.JSONEncoder(separators=(",", ":")).encode
    # No markers: threads share it. Default, strings, indent, separators; keys neither sorted nor skipped.
    make, strings = parts["c_make_encoder"], parts["encode_basestring_ascii"]
    pieces = make(None, json.JSONEncoder().default, strings, None, ":", ",", False, False, True)
    return lambda told: "".join(pieces(told, 0))


_dumps = _encoder()
#: A table of names is begun anew when it has so many times as many as are used, and some more.
_WASTE = 2
_SPARE = 16
#: What stands for something that a checkpoint does not have; it could not be a list of names.
_MISSING = 0
#: What a list begins with that stands for an object, or for a list.
_OBJECT, _LIST = 0, 1
#: What comes of a text that is not the one that was written.
_MISFITS = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)


class Told(NamedTuple):
    """What is told, as it is stored."""

    names: tuple[str, ...]
    text: str

    def fields(self) -> dict[str, str]:
        """Answer the members of the state that hold it."""
        return {"names": _names_text(self.names), "told": self.text}


def write_told(told: Mapping[str, Any], known: Sequence[str] = ()) -> Told:
    """Write it down: `id`, `versions` and `kinds`, and `seen` and `updated` where there are any.

    Args:
        known: the names that were told before, in their places.
    """
    names = _Names(known)
    text = _dumps(names.numbered(told))
    if len(names.table) > _WASTE * len(names.used) + _SPARE:
        return write_told(told)
    return Told(tuple(names.table), text)


@dataclass(frozen=True, slots=True)
class Space:
    """What a state holds of one namespace beside the values of its channels."""

    #: The checkpoint it is of.
    id: str
    versions: Mapping[str, Any]
    #: How to read the channels that are not what they look like.
    kinds: Mapping[str, Any]
    #: What the numbers of its text stand for.
    names: tuple[str, ...] = ()
    #: What the namespace is called in the state.
    key: str = ""
    #: What the run was given that began with it, packed; known to who recorded it just now.
    given: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def read(cls, key: str, stored: dict[str, Any]) -> Space:
        """Read what is stored of it, which is taken apart."""
        names = names_told(stored)
        told = take_told(stored)
        return cls(told["id"], told["versions"], told["kinds"], names, key)


def spaces_in(stored: Mapping[str, dict[str, Any]]) -> dict[str, Space]:
    """Read what a state holds of all namespaces, by namespace.

    One that cannot be read, because redaction hid it, is as none: the others go on, and it is told anew.
    """
    found: dict[str, Space] = {}
    for key, space in stored.items():
        with suppress(CheckpointSchemaError):
            found[read_name(key)] = Space.read(key, space)
    return found


def names_told(stored: Mapping[str, Any]) -> tuple[str, ...]:
    """Answer the names that a state holds of a namespace, in their places.

    Raises:
        CheckpointSchemaError: they are not what was written.
    """
    try:
        return tuple(read_json(stored.get("names", "[]")))
    except _MISFITS as fault:
        raise _unreadable(fault) from fault


def take_told(stored: dict[str, Any]) -> dict[str, Any]:
    """Take what was written down out of what a state holds of a namespace.

    Raises:
        CheckpointSchemaError: it is not what was written.
    """
    try:
        return _taken(stored)
    except _MISFITS as fault:
        raise _unreadable(fault) from fault


def _taken(stored: dict[str, Any]) -> dict[str, Any]:
    text = stored.pop("told")
    if "names" not in stored:
        # As the first version wrote it.
        plain, names, numbered = read_json(text)
        return {"id": stored.pop("id"), **plain, **_first_named(numbered, names)}
    return _named(read_json(text), read_json(stored.pop("names")))


class _Names:
    """Gives numbers to names."""

    def __init__(self, known: Sequence[str]) -> None:
        self.table = {name: number for number, name in enumerate(known)}
        self.used: set[int] = set()

    def numbered(self, told: Mapping[str, Any]) -> list[Any]:
        updated = told.get("updated", _MISSING)
        return [
            told["id"],
            self._versions(told["versions"]),
            self._seen(told["seen"]) if "seen" in told else _MISSING,
            [self._of(name) for name in updated] if updated else updated,
            self._kind(told["kinds"])[1:],
        ]

    def _seen(self, seen: Mapping[str, Any]) -> list[Any]:
        return [[self._of(node), *self._versions(versions)] for node, versions in seen.items()]

    def _of(self, name: str) -> int:
        number = self.table.setdefault(name, len(self.table))
        self.used.add(number)
        return number

    def _versions(self, versions: Mapping[str, Any]) -> list[Any]:
        table, use, told = self.table, self.used.add, list[Any]()
        for name, version in versions.items():
            number = table.setdefault(name, len(table))
            use(number)
            told += number, version
        return told

    def _kind(self, kind: Any) -> Any:
        if isinstance(kind, dict):
            pairs = ((self._of(name), self._kind(inner)) for name, inner in kind.items())
            return [_OBJECT, *chain.from_iterable(pairs)]
        if isinstance(kind, list):
            return [_LIST, *map(self._kind, kind)]
        return None if kind is None else self._of(kind)


def _named(told: list[Any], names: list[str]) -> dict[str, Any]:
    checkpoint_id, versions, seen, updated, kinds = told
    read = {"id": checkpoint_id, "versions": _read_versions(versions, names)}
    if seen != _MISSING:
        read["seen"] = {names[node]: _read_versions(at, names) for node, *at in seen}
    if updated != _MISSING:
        read["updated"] = updated and [names[number] for number in updated]
    return {**read, "kinds": _read_kind([_OBJECT, *kinds], names)}


def _read_versions(told: list[Any], names: list[str]) -> dict[str, Any]:
    return {names[name]: version for name, version in _pairs(told)}


def _read_kind(told: Any, names: list[str]) -> Any:
    if not isinstance(told, list):
        return None if told is None else names[told]
    if told[0] == _OBJECT:
        return {names[name]: _read_kind(kind, names) for name, kind in _pairs(told[1:])}
    return [_read_kind(kind, names) for kind in told[1:]]


def _pairs(told: list[Any]) -> zip[tuple[Any, Any]]:
    return zip(told[::2], told[1::2], strict=True)


def _first_named(told: Any, names: list[str]) -> Any:
    if type(told) is dict:
        return {names[int(number)]: _first_named(item, names) for number, item in told.items()}
    return [_first_named(item, names) for item in told] if type(told) is list else told


def _unreadable(fault: Exception) -> CheckpointSchemaError:
    return CheckpointSchemaError(
        f"what is told of the channels of a checkpoint cannot be read ({type(fault).__name__}: {fault})",
        hint="Redaction hid it behind a name like `token`, or somebody else wrote to the store: run "
        "`holdfast doctor`.",
    )


@lru_cache(maxsize=256)
def _names_text(names: tuple[str, ...]) -> str:
    return _dumps(names)
