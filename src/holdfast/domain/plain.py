"""Plain trees: what is stored of any value, and the registry that turns values into them and back.

A plain tree is null, booleans, 64-bit integers, floats, strings, bytes, lists, and objects with string keys.
Everything else is an object with the key `$hf`, see the format page.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, TypeVar, overload
from uuid import UUID
from zoneinfo import ZoneInfo

from holdfast.domain import msgpack
from holdfast.domain.errors import (
    CheckpointCorruptError,
    CheckpointError,
    CheckpointSchemaError,
    ConfigError,
    UnstorableValueError,
    UnsupportedTypeError,
    UnsupportedVersionError,
)
from holdfast.domain.kinds import Kind, custom, kind_of
from holdfast.domain.personal import Erased, People, Personal, revive_personal, tag_personal
from holdfast.domain.tree import TAG, copy_tree

LoadBlob = Callable[[str], bytes]
Tagged = dict[str, Any]
Function = Callable[[Any], Any] | None
Class = TypeVar("Class", bound=type)

#: Below the smallest limit Python lets anyone set on decimal conversion; longer integers are hexadecimal.
_DECIMAL_BITS = 2_100
_SCALARS = frozenset({str, int, float, bool, type(None), bytes, bytearray, memoryview})


class Plain:
    """A tree that is plain already; a packer takes it as it is, tags included."""

    __slots__ = ("tree",)

    def __init__(self, tree: Any) -> None:
        self.tree = tree


class TypeRegistry:
    """The types a store may hold beyond plain data. Filled by the application, never by a store."""

    def __init__(self) -> None:
        self._writers: dict[type, Callable[[Any], Tagged]] = dict(_WRITERS)
        self._kinds: dict[str, tuple[type, Kind]] = {}
        self._people: People | None = None

    def of_people(self, people: People) -> TypeRegistry:
        """Answer this registry, whatever is added to it later included, for a store that keeps `Personal`."""
        twin = copy.copy(self)
        twin._people = people
        return twin

    @overload
    def register(
        self, cls: Class, name: str | None = ..., *, encode: Function = ..., decode: Function = ...
    ) -> Class: ...

    @overload
    def register(
        self, cls: None = ..., name: str | None = ..., *, encode: Function = ..., decode: Function = ...
    ) -> Callable[[Class], Class]: ...

    def register(
        self,
        cls: Any = None,
        name: str | None = None,
        *,
        encode: Function = None,
        decode: Function = None,
    ) -> Any:
        """Let values of a class be stored. Without a class, returns a decorator.

        Args:
            cls: an enum, dataclass, named tuple, pydantic model or msgspec struct; with functions, any class.
            name: what the store calls it; the class's own name by default. Never change it later.
            encode: turns a value into something that can be stored.
            decode: turns that back into the value.

        Raises:
            ConfigError: the name is taken, or it is unknown how to store the class.
        """
        if cls is None:
            return lambda decorated: self._add(decorated, name, encode, decode)
        return self._add(cls, name, encode, decode)

    def tag(self, value: Any, pack: Callable[[Any], bytes] | None = None) -> Tagged:
        """Turn a value into its tagged object, one level deep; `pack` orders the items of sets.

        Raises:
            UnsupportedTypeError: nobody registered the type.
        """
        kind = type(value)
        if kind is set or kind is frozenset:
            return {TAG: kind.__name__, "v": sorted(value, key=pack or self._pack)}
        if kind is Personal or kind is Erased:
            return tag_personal(value, self._people, pack or self._pack)
        writer = self._writers.get(kind)
        if writer is None:
            raise UnsupportedTypeError(
                f"values of type {kind.__module__}.{kind.__qualname__} cannot be stored",
                hint=f"Register the type ({kind.__name__}), or convert the value.",
            )
        return writer(value)

    def revive(self, plain: Any, load_blob: LoadBlob | None = None, *, owned: bool = False) -> Any:
        """Turn a plain tree into the values it was made of.

        Args:
            plain: the tree.
            load_blob: gives the bytes of a blob by SHA-256; without it references to blobs are refused.
            owned: the tree may be changed in place, which saves a copy of it.

        Raises:
            CheckpointSchemaError: a stored type is not registered, or its class has changed.
            CheckpointCorruptError: a tagged object is not one that Holdfast writes.
        """
        root = [plain] if owned else [copy_tree(plain)]
        todo: list[Any] = [root]
        tagged: list[tuple[Any, Any, Tagged]] = []
        while todo:
            owner = todo.pop()
            for key, value in owner.items() if type(owner) is dict else enumerate(owner):
                kind = type(value)
                if kind is dict:
                    if TAG in value:
                        tagged.append((owner, key, value))
                    todo.append(value)
                elif kind is list:
                    todo.append(value)
        # Inner tags were found after outer ones.
        for owner, key, value in reversed(tagged):
            owner[key] = self._revive_tagged(value, load_blob)
        return root[0]

    def _add(self, cls: type, name: str | None, encode: Any, decode: Any) -> type:
        name = name or cls.__name__
        if cls in _WRITERS or cls in _SCALARS or cls in (dict, list, set, frozenset, Personal, Erased):
            raise ConfigError(f"{cls.__name__} is stored by Holdfast itself and cannot be registered")
        kind = custom(encode, decode) if encode and decode else kind_of(cls)
        if kind is None or bool(encode) != bool(decode):
            raise ConfigError(
                f"it is unknown how to store {cls.__qualname__}",
                hint="Give both encode and decode, or make it a dataclass.",
            )
        known = self._kinds.get(name)
        if known and _home(known[0]) != _home(cls):
            raise ConfigError(
                f"the name {name!r} belongs to {known[0].__module__}.{known[0].__qualname__}",
                hint="Register the class under another name.",
            )
        self._kinds[name] = (cls, kind)
        tag, take = kind.tag, kind.take
        self._writers[cls] = lambda value: {TAG: tag, "t": name, **take(value)}
        return cls

    def _pack(self, value: Any) -> bytes:
        return msgpack.pack(to_plain(value, self))

    def _revive_tagged(self, value: Tagged, load_blob: LoadBlob | None) -> Any:
        what = value[TAG]
        try:
            if what == "obj" or what == "enum":
                return self._revive_registered(value["t"], value)
            if what == "blob":
                return read_blob(value, load_blob)
            if what == "personal":
                return revive_personal(value, self._people, lambda v: self.revive(msgpack.unpack(v)))
            reader = _READERS.get(what)
            if reader:
                return reader(value)
        except CheckpointError:
            raise
        except Exception as fault:
            raise CheckpointCorruptError(f"a stored {what} cannot be read back ({fault!r})") from fault
        raise UnsupportedVersionError(
            f"the stored tag {what!r} is unknown", hint="A newer version of Holdfast may have written it."
        )

    def _revive_registered(self, name: str, value: Tagged) -> Any:
        if name not in self._kinds:
            raise CheckpointSchemaError(
                f"the stored type {name!r} is not registered",
                hint=f"Register the class that is stored as {name!r} before restoring.",
            )
        try:
            return self._kinds[name][1].put(value)
        except CheckpointError:
            raise
        except Exception as fault:
            raise CheckpointSchemaError(
                f"a stored {name!r} does not fit its class any more ({fault!r})",
                hint="Register the class with a decode function that handles old values.",
            ) from fault


def read_blob(reference: Tagged, load_blob: LoadBlob | None) -> str | bytes:
    """Load the value a blob reference stands for."""
    sha256, kind, size = reference["sha256"], reference["kind"], reference["len"]
    if load_blob is None:
        raise CheckpointCorruptError(f"the value in blob {sha256} was not loaded")
    data = load_blob(sha256)
    if len(data) != size or kind not in ("str", "bytes"):
        raise CheckpointCorruptError(f"blob {sha256} has {len(data)} bytes, not {size} of {kind}")
    return data.decode() if kind == "str" else data


def to_plain(value: Any, registry: TypeRegistry) -> Any:
    """Turn any supported value into a plain tree, exactly and at any depth, naming the path of what fails.

    Raises:
        UnsupportedTypeError: nobody registered a type.
        UnstorableValueError: a value contains itself or is nested too deep.
    """
    return _Walk(registry).run(value)


#: A step down in a value: the step before and its key, None at the top.
_Path = tuple[Any, Any] | None
_Child = tuple[Any, Any, Any, _Path, int]


class _Walk:
    """One walk through a value, depth first with a stack of its own."""

    def __init__(self, registry: TypeRegistry) -> None:
        self._registry = registry
        self._inside: set[int] = set()
        self._todo: list[_Child | tuple[Any]] = []

    def run(self, value: Any) -> Any:
        root = [None]
        self._todo.append((root, 0, value, None, 1))
        while self._todo:
            step = self._todo.pop()
            if len(step) == 1:
                self._inside.discard(id(step[0]))
                continue
            owner, key, value, path, depth = step
            if type(value) in _SCALARS:
                owner[key] = _scalar(value)
                continue
            self._enter(value, path, depth)
            try:
                owner[key], children = self._open(value, path, depth)
            except (UnsupportedTypeError, UnstorableValueError) as fault:
                raise type(fault)(fault.message, place=place(path) + fault.place, hint=fault.hint) from None
            self._todo.extend(reversed(list(children)))
        return root[0]

    def _enter(self, value: Any, path: _Path, depth: int) -> None:
        if id(value) in self._inside:
            raise UnstorableValueError("a value contains itself", place=place(path))
        if depth > msgpack.MAX_DEPTH:
            raise UnstorableValueError(
                f"values are nested deeper than {msgpack.MAX_DEPTH} levels", place=f"{place(path)[:200]}..."
            )
        self._inside.add(id(value))
        self._todo.append((value,))

    def _open(self, value: Any, path: _Path, depth: int) -> tuple[Any, Iterable[_Child]]:
        if type(value) is list:
            items = list(value)
            return items, [(items, i, item, (path, i), depth + 1) for i, item in enumerate(items)]
        if type(value) is dict:
            return self._open_dict(dict(value), path, depth)
        tagged = self._registry.tag(value)
        below: Iterator[tuple[str, Any]] = ((key, inner) for key, inner in tagged.items() if key != TAG)
        return tagged, [
            # Nobody knows the members of a tag, only the attributes in them.
            (tagged, key, inner, path if key in ("v", "private") else (path, key), depth + 1)
            for key, inner in below
        ]

    def _open_dict(self, fields: dict[Any, Any], path: _Path, depth: int) -> tuple[Any, Iterable[_Child]]:
        texts = all(type(key) is str and _is_text(key) for key in fields)
        if texts and TAG not in fields:
            return fields, [(fields, key, item, (path, key), depth + 1) for key, item in fields.items()]
        pairs = [[key, item] for key, item in fields.items()]
        children: list[_Child] = []
        for pair in pairs:
            below = (path, pair[0])
            children += [(pair, 0, pair[0], below, depth + 3), (pair, 1, pair[1], below, depth + 3)]
        return {TAG: "dict" if texts else "map", "v": pairs}, children


def place(path: _Path) -> str:
    """Write the steps of a path as a person would: `tasks[3].name`."""
    keys = []
    while path:
        path, key = path
        keys.append(key)
    words = [f".{key}" if type(key) is str and key.isidentifier() else f"[{key!r}]" for key in reversed(keys)]
    return "".join(words).removeprefix(".")


def _home(cls: type) -> tuple[str, str]:
    """Where a class is defined; a cell run again defines the same class anew."""
    return cls.__module__, cls.__qualname__


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)


def _scalar(value: Any) -> Any:
    if type(value) is str and not _is_text(value):
        return {TAG: "str", "v": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()}
    if type(value) is int and not msgpack.INT_MIN <= value <= msgpack.INT_MAX:
        return {TAG: "int", "v": str(value) if value.bit_length() <= _DECIMAL_BITS else hex(value)}
    return bytes(value) if type(value) in (bytearray, memoryview) else value


def _moment(name: str) -> Callable[[Any], Tagged]:
    """Make the writer for datetime or time: text, zone and fold."""

    def write(value: datetime | time) -> Tagged:
        tagged: Tagged = {TAG: name, "v": value.isoformat()}
        if value.tzinfo is not None and value.tzinfo is not UTC:
            tagged.update(_zone(value.tzinfo))
        if value.fold:
            tagged["fold"] = 1
        return tagged

    return write


def _zone(zone: tzinfo) -> dict[str, str]:
    if type(zone) is ZoneInfo and zone.key:
        return {"tz": zone.key}
    if type(zone) is timezone:
        name = zone.tzname(None)
        return {} if name == timezone(zone.utcoffset(None)).tzname(None) else {"name": name}
    raise UnstorableValueError(
        f"the time zone {zone!r} cannot be stored", hint="Use datetime.timezone, or ZoneInfo with a key."
    )


def _read_moment(read: Callable[[str], Any]) -> Callable[[Tagged], Any]:
    def revive(tagged: Tagged) -> Any:
        value = read(tagged["v"])
        if "tz" in tagged:
            value = value.replace(tzinfo=ZoneInfo(tagged["tz"]))
        elif "name" in tagged:
            value = value.replace(tzinfo=timezone(value.utcoffset(), tagged["name"]))
        return value.replace(fold=1) if tagged.get("fold") else value

    return revive


def _read_int(text: str) -> int:
    return int(text, 16) if "x" in text[:3] else int(text)


_WRITERS: dict[type, Callable[[Any], Tagged]] = {
    datetime: _moment("datetime"),
    time: _moment("time"),
    date: lambda value: {TAG: "date", "v": value.isoformat()},
    timedelta: lambda value: {TAG: "timedelta", "v": [value.days, value.seconds, value.microseconds]},
    UUID: lambda value: {TAG: "uuid", "v": str(value)},
    Decimal: lambda value: {TAG: "decimal", "v": str(value)},
    tuple: lambda value: {TAG: "tuple", "v": list(value)},
    type(Path()): lambda value: {TAG: "path", "v": value.as_posix()},
    PurePosixPath: lambda value: {TAG: "posixpath", "v": str(value)},
    PureWindowsPath: lambda value: {TAG: "windowspath", "v": str(value)},
}

_READERS: dict[str, Callable[[Tagged], Any]] = {
    "datetime": _read_moment(datetime.fromisoformat),
    "time": _read_moment(time.fromisoformat),
    "date": lambda tagged: date.fromisoformat(tagged["v"]),
    "timedelta": lambda tagged: timedelta(*tagged["v"]),
    "uuid": lambda tagged: UUID(tagged["v"]),
    "decimal": lambda tagged: Decimal(tagged["v"]),
    "bytes": lambda tagged: base64.b64decode(tagged["v"], validate=True),
    "float": lambda tagged: float(tagged["v"]),
    "int": lambda tagged: _read_int(tagged["v"]),
    "str": lambda tagged: base64.b64decode(tagged["v"], validate=True).decode("utf-8", "surrogatepass"),
    "tuple": lambda tagged: tuple(tagged["v"]),
    "set": lambda tagged: set(tagged["v"]),
    "frozenset": lambda tagged: frozenset(tagged["v"]),
    "path": lambda tagged: Path(tagged["v"]),
    "posixpath": lambda tagged: PurePosixPath(tagged["v"]),
    "windowspath": lambda tagged: PureWindowsPath(tagged["v"]),
    "map": lambda tagged: dict(tagged["v"]),
    "dict": lambda tagged: dict(tagged["v"]),
}
