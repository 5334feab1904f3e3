"""The packer: MessagePack in C for what it can do, an exact slower way for the rest, the same bytes in both.

The C encoder is never given a hook that runs Python: while such a hook runs another thread may shrink a list
that the encoder is walking, which crashes the process. It sees either the caller's data without interruption
or a copy that nobody else holds.
"""

from __future__ import annotations

from typing import Any

import ormsgpack
from ormsgpack import packb, unpackb

from holdfast.domain import msgpack
from holdfast.domain.errors import UnstorableValueError
from holdfast.domain.plain import NESTED_SETS_MAX, SETS, Plain, TypeRegistry, to_plain

#: The key of every tagged object, packed.
_MARK = b"\xa3$hf"
_OPTIONS = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
_SCALARS = frozenset({str, int, float, bool, type(None), bytes, bytearray, memoryview})


class OrmsgpackPacker:
    """Packs any registered value; equal bytes mean the same value of the same type."""

    def __init__(self, registry: TypeRegistry) -> None:
        self._registry = registry

    def pack(self, value: Any) -> bytes:
        """Encode any supported value, or a `Plain` tree as it is.

        Raises:
            UnsupportedTypeError: nobody registered a type; names the path.
            UnstorableValueError: a value contains itself or is nested too deep; names the path.
        """
        try:
            data = packb(value, None, _OPTIONS)
            if _MARK[1] not in data or not msgpack.contains(data, _MARK, rare=1):
                return data
        except TypeError:
            if type(value) is Plain:
                return pack_plain(value.tree)
            packed = self._pack_copy(value)
            if packed is not None:
                return packed
        return pack_plain(to_plain(value, self._registry))

    @staticmethod
    def pack_plain(plain: Any) -> bytes:
        """Encode a plain tree as it is."""
        try:
            return packb(plain, None, _OPTIONS)
        except TypeError:
            return msgpack.pack(plain)

    def unpack(self, data: bytes) -> Any:
        """Decode packed bytes to a plain tree.

        Raises:
            CheckpointCorruptError: the bytes are not what `pack` gives.
        """
        try:
            return unpackb(data)
        except ValueError:
            return msgpack.unpack(data)

    def _pack_copy(self, value: Any) -> bytes | None:
        """Pack a tagged copy; None where only the exact way is right or can name what is wrong."""
        copy = _Copy(self._registry, self)
        try:
            data = packb(copy.of(value), None, _OPTIONS)
        except Exception:
            return None
        # More marks than tags: the caller's own data looks like tags and must be escaped.
        return data if data.count(_MARK) == copy.tags else None


pack_plain = OrmsgpackPacker.pack_plain


class _Copy:
    """A private copy of a value in which everything that is not plain is tagged."""

    __slots__ = ("_packer", "_registry", "_sets", "tags")

    def __init__(self, registry: TypeRegistry, packer: OrmsgpackPacker) -> None:
        self._registry = registry
        self._packer = packer
        self._sets = 0
        self.tags = 0

    def of(self, value: Any) -> Any:
        kind = type(value)
        if kind in _SCALARS:
            return value
        if kind is dict:
            copy = value.copy()
        elif kind is list:
            items = value.copy()
            for index, item in enumerate(items):
                if type(item) not in _SCALARS:
                    items[index] = self.of(item)
            return items
        else:
            copy = self._registry.tag(value, self._packer.pack)
            self.tags += 1
            if type(copy["v"]) is str:
                return copy
            if kind in SETS:
                copy["v"] = self._ordered(copy["v"])
                return copy
        for key, item in copy.items():
            if type(item) not in _SCALARS:
                copy[key] = self.of(item)
        return copy

    def _ordered(self, items: list[Any]) -> list[Any]:
        """Copy the items of a set, in the order of what is stored of them."""
        self._sets += 1
        if self._sets > NESTED_SETS_MAX:
            raise UnstorableValueError(f"sets are nested deeper than {NESTED_SETS_MAX} levels")
        copies = [self.of(item) for item in items]
        if len(copies) > 1:
            copies.sort(key=pack_plain)
        self._sets -= 1
        return copies
