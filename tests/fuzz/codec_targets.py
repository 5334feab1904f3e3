"""Encodings of states: codecs, compression, packed trees, changes, tagged values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Send

from holdfast.adapters.codecs import codec
from holdfast.adapters.compression import compress, decompress
from holdfast.domain import delta, json_patch, msgpack, plainjson, pointer
from holdfast.domain.errors import CheckpointError
from holdfast.domain.json_patch import EditError, Step
from holdfast.domain.plain import TypeRegistry
from holdfast.domain.state import WorkflowState
from holdfast.integrations.langgraph_msgpack import closed, opened
from holdfast.integrations.langgraph_values import Values
from tests.fuzz import real_store
from tests.fuzz.target import Target, same, text_of

_LIMIT_BYTES = 1 << 20
_TREES: tuple[Any, ...] = (
    {"a": [1, -1, 2.5, None, True, "text"], "b": {"c": b"\0\xff", "d": []}},
    [[], {}, "", 0, 2**63 - 1, -(2**63), 1e308, "\u20ac"],
    {"$hf": "set", "v": [1, 2]},
    {"k" * 40: list(range(40)), "nested": [[[[[[1]]]]]]},
)


def _codec(name: str) -> Target:
    one = codec(name)

    def run(data: bytes) -> None:
        plain = one.decode(data)
        same(one.decode(one.encode(plain)), plain)

    return Target(f"codec_{name}", run, lambda: [one.encode(tree) for tree in _TREES])


def _unpack(data: bytes) -> None:
    plain = msgpack.unpack(data)
    same(msgpack.unpack(msgpack.pack(plain)), plain)


def _plainjson(data: bytes) -> None:
    plain = plainjson.loads(data)
    same(plainjson.loads(plainjson.dumps(plain)), plain)
    plainjson.loads(data, strict=True)


def _compression(name: str) -> Target:
    def run(data: bytes) -> None:
        raw = decompress(name, data[2:], int.from_bytes(data[:2], "big"), _LIMIT_BYTES)
        same(decompress(name, compress(name, [raw]), len(raw), _LIMIT_BYTES), raw)

    def seeds() -> Iterable[bytes]:
        for raw in (b"", b"abc", b"state " * 500):
            yield len(raw).to_bytes(2, "big") + compress(name, [raw])

    return Target(f"compression_{name}", run, seeds)


def _delta(data: bytes) -> None:
    ops = plainjson.loads(data)
    delta.apply(ops if isinstance(ops, list) else [ops], {"a": [1, 2, 3], "b": {"c": "text"}}, bytes.fromhex)


def _delta_seeds() -> Iterable[bytes]:
    ops = [
        delta.set_value(("b", "d"), [1]),
        delta.delete(("b", "c")),
        delta.splice(("a",), 1, 1, [7, 8]),
        delta.append(("b", "c"), " more"),
    ]
    return [plainjson.dumps(ops), *(plainjson.dumps([op]) for op in ops)]


def _revived(data: bytes) -> None:
    """Make values of tagged trees, as a restored state is made."""
    TypeRegistry().revive(plainjson.loads(data), bytes.fromhex)


def _revived_seeds() -> Iterable[bytes]:
    tree = real_store.restored()
    return [plainjson.dumps(tree), *(plainjson.dumps(value) for value in tree["context"].values())]


def _state(data: bytes) -> None:
    fields = TypeRegistry().revive(plainjson.loads(data))
    if isinstance(fields, dict):
        WorkflowState.from_fields(fields)


def _pointer(data: bytes) -> None:
    text = text_of(data)
    steps = pointer.parse_pointer(text)
    same(pointer.parse_pointer(pointer.pointer_text(steps)), steps)
    pointer.look_up({"a": [{"b": 1}], "": 2, "~/": 3}, steps)


def _patch(data: bytes) -> None:
    try:
        edits = json.loads(data)
    except (ValueError, RecursionError):
        return
    steps = [
        Step(str(one.get("op")), str(one.get("path")), one.get("value"), one.get("from"))
        for one in (edits if isinstance(edits, list) else [])
        if isinstance(one, dict) and isinstance(one.get("from", ""), str)
    ]
    json_patch.patched({"a": [1, {"b": 2}], "c": "text"}, steps)


def _patch_seeds() -> Iterable[bytes]:
    patch = [
        {"op": "add", "path": "/a/-", "value": 3},
        {"op": "test", "path": "/c", "value": "text"},
        {"op": "copy", "from": "/a", "path": "/d"},
        {"op": "move", "from": "/a/1/b", "path": "/e"},
        {"op": "replace", "path": "/c", "value": {"x": []}},
        {"op": "remove", "path": "/a/0"},
    ]
    return [json.dumps(patch).encode(), *(json.dumps([one]).encode() for one in patch)]


def _langgraph(data: bytes) -> None:
    if closed(opened(data)) != data:
        same(closed(opened(data)), data)


def _langgraph_seeds() -> Iterable[bytes]:
    serde = JsonPlusSerializer()
    values = ({"a": {1, 2}, "b": Decimal("1.5")}, [("x", 1)], {"m": [b"bytes", None, 1.5]})
    return [serde.dumps_typed(value)[1] for value in values]


def _langgraph_value(data: bytes) -> None:
    """Read a value of a channel by the kind that is stored beside it."""
    stored = plainjson.loads(data)
    if isinstance(stored, list) and len(stored) == 2:
        _values().decode(*stored)


@cache
def _values() -> Values:
    return Values(JsonPlusSerializer(), lambda value: False)


def _langgraph_value_seeds() -> Iterable[bytes]:
    message = HumanMessage("hello", id="1")
    values = (message, [message, message], {"a": (1, Decimal("1.5"))}, Send("node", {"m": message}), {1, 2})
    return [plainjson.dumps(list(_values().encode(value, ""))) for value in values]


TARGETS = (
    _codec("json"),
    _codec("msgpack"),
    _codec("cbor"),
    Target("msgpack_unpack", _unpack, lambda: [msgpack.pack(tree) for tree in _TREES]),
    Target("plainjson", _plainjson, lambda: [plainjson.dumps(tree) for tree in _TREES]),
    _compression("none"),
    _compression("gzip"),
    _compression("zstd"),
    Target("delta", _delta, _delta_seeds),
    Target("tagged_values", _revived, _revived_seeds),
    Target("workflow_state", _state, lambda: [plainjson.dumps(real_store.restored())]),
    Target("json_pointer", _pointer, lambda: [b"", b"/a/0/b", b"/~1~0", b"/a/-"]),
    Target("json_patch", _patch, _patch_seeds, (EditError, CheckpointError)),
    Target("langgraph_msgpack", _langgraph, _langgraph_seeds),
    Target("langgraph_value", _langgraph_value, _langgraph_value_seeds),
)
