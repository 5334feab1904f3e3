"""What LangGraph's serializer wrote, opened: its texts are texts to whoever looks for secrets in them.

In bytes a secret that is hidden would change lengths that are told before it: nothing could be read again.
"""

from __future__ import annotations

from typing import Any

import ormsgpack

_OPTIONS = ormsgpack.OPT_NON_STR_KEYS


class _Extension:
    """An object as the serializer writes it: what it is a case of, and its own bytes."""

    __slots__ = ("code", "data")

    def __init__(self, code: int, data: bytes) -> None:
        self.code = code
        self.data = data


def opened(data: bytes) -> Any:
    """Answer packed data as plain data; as they are if they would not be packed the same again."""
    try:
        tree = _opened(data)
        return tree if closed(tree) == data else data
    except (TypeError, ValueError):
        return data


def closed(tree: Any) -> bytes:
    """Answer opened data as they were packed."""
    return tree if type(tree) is bytes else ormsgpack.packb(_closed(tree), None, _OPTIONS)


def _opened(data: bytes) -> Any:
    return _told(ormsgpack.unpackb(data, ext_hook=_Extension, option=_OPTIONS))


def _told(value: Any) -> Any:
    """Tell objects and extensions apart by a mark around each of them."""
    if type(value) is _Extension:
        return {"code": value.code, "of": _opened(value.data)}
    if type(value) is dict:
        return {"map": {key: _told(item) for key, item in value.items()}}
    return [_told(item) for item in value] if type(value) is list else value


def _closed(told: Any) -> Any:
    if type(told) is list:
        return [_closed(item) for item in told]
    if type(told) is not dict:
        return told
    if "map" in told:
        return {key: _closed(item) for key, item in told["map"].items()}
    return ormsgpack.Ext(told["code"], ormsgpack.packb(_closed(told["of"]), None, _OPTIONS))
