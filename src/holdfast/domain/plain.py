"""Plain trees: what is stored of any value, and the registry that turns values into them and back.

A plain tree is null, booleans, 64-bit integers, floats, strings, bytes, lists, and objects with string keys.
Everything else is an object with the key `$hf`, see the format page.
"""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, overload

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
from holdfast.domain.standard_types import READERS, WRITERS, Tagged
from holdfast.domain.tree import TAG, copy_tree

LoadBlob = Callable[[str], bytes]
Function = Callable[[Any], Any] | None
Class = TypeVar("Class", bound=type)

#: Below the smallest limit Python lets anyone set on decimal conversion; longer integers are hexadecimal.
_DECIMAL_BITS = 2_100
_SCALARS = frozenset({str, int, float, bool, type(None), bytes, bytearray, memoryview})
SETS = frozenset({set, frozenset})
#: Levels that sets may be nested in sets: each is put in order by all that is in it.
NESTED_SETS_MAX = 100


class Plain:
    """A tree that is plain already; a packer takes it as it is, tags included."""

    __slots__ = ("tree",)

    def __init__(self, tree: Any) -> None:
        self.tree = tree


class TypeRegistry:
    """The types a store may hold beyond plain data. Filled by the application, never by a store."""

    def __init__(self) -> None:
        self._writers: dict[type, Callable[[Any], Tagged]] = dict(WRITERS)
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
        """Turn a value into its tagged object, one level deep; the items of a set are still to be ordered.

        Raises:
            UnsupportedTypeError: nobody registered the type.
        """
        kind = type(value)
        if kind in SETS:
            return {TAG: kind.__name__, "v": list(value)}
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
        if cls in WRITERS or cls in _SCALARS or cls in (dict, list, set, frozenset, Personal, Erased):
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
            reader = READERS.get(what)
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
#: What is done when all below a value is plain: leave it, and order the items if it is a set.
_End = tuple[Any, Any]


class _Walk:
    """One walk through a value, depth first with a stack of its own."""

    def __init__(self, registry: TypeRegistry) -> None:
        self._registry = registry
        self._inside: set[int] = set()
        self._todo: list[_Child | _End] = []
        self._sets = 0

    def run(self, value: Any) -> Any:
        root = [None]
        self._todo.append((root, 0, value, None, 1))
        while self._todo:
            step = self._todo.pop()
            if len(step) == 2:
                self._leave(*step)
                continue
            owner, key, value, path, depth = step
            if type(value) in _SCALARS:
                owner[key] = _scalar(value)
                continue
            self._enter(value, path, depth)
            try:
                plain, children = self._open(value, path, depth)
            except (UnsupportedTypeError, UnstorableValueError) as fault:
                raise type(fault)(fault.message, place=place(path) + fault.place, hint=fault.hint) from None
            owner[key] = plain
            self._todo.append((value, plain))
            self._todo.extend(reversed(list(children)))
        return root[0]

    def _leave(self, value: Any, plain: Any) -> None:
        self._inside.discard(id(value))
        if type(value) in SETS:
            self._sets -= 1
            if len(plain["v"]) > 1:
                plain["v"].sort(key=msgpack.pack)

    def _enter(self, value: Any, path: _Path, depth: int) -> None:
        if id(value) in self._inside:
            raise UnstorableValueError("a value contains itself", place=place(path))
        if depth > msgpack.MAX_DEPTH:
            raise UnstorableValueError(
                f"values are nested deeper than {msgpack.MAX_DEPTH} levels", place=f"{place(path)[:200]}..."
            )
        if type(value) in SETS:
            self._sets += 1
            if self._sets > NESTED_SETS_MAX:
                raise UnstorableValueError(
                    f"sets are nested deeper than {NESTED_SETS_MAX} levels", place=f"{place(path)[:200]}..."
                )
        self._inside.add(id(value))

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
