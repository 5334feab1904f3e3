"""Values of channels as plain data and back, with what they were told apart from the data itself.

A kind says how to read a value: None as it stands, `messages` and `message` as LangChain's, `typed` by
LangGraph's serializer, `bytearray` as that; those of an object, a list or a tuple say so for each member.
Since kinds are kept beside the values, nothing in a value can pass for a mark.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import ormsgpack

from holdfast.domain.errors import CheckpointSchemaError, UnsupportedTypeError
from holdfast.integrations.framework import framework
from holdfast.integrations.langgraph_faces import face_of
from holdfast.integrations.langgraph_msgpack import closed, opened

with framework("langgraph-checkpoint", "4.3", "4.4", extra="langgraph"):
    from langchain_core import messages as lc
    from langchain_core.messages import BaseMessage
    from langchain_core.messages.base import TextAccessor
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.checkpoint.serde.types import _DeltaSnapshot
    from langgraph.types import Command, Interrupt, Overwrite, Send
    from pydantic import BaseModel

#: How to read a value; plain data itself.
Kind = None | str | dict[str, Any]

_CLASSES: tuple[type[BaseMessage], ...] = (
    lc.AIMessage,
    lc.AIMessageChunk,
    lc.ChatMessage,
    lc.ChatMessageChunk,
    lc.FunctionMessage,
    lc.FunctionMessageChunk,
    lc.HumanMessage,
    lc.HumanMessageChunk,
    lc.RemoveMessage,
    lc.SystemMessage,
    lc.SystemMessageChunk,
    lc.ToolMessage,
    lc.ToolMessageChunk,
)
_MESSAGES = frozenset(_CLASSES)
#: By what a message says it is; nothing else is ever made from what a store calls a message.
_BY_TYPE = {cls.model_fields["type"].default: cls for cls in _CLASSES}
_FIELDS = {cls: frozenset(cls.model_fields) for cls in _CLASSES}

#: What `object.__setattr__` would look up by name, for each of thousands of messages.
_new = object.__new__
_set_dict = BaseModel.__dict__["__dict__"].__set__
_set_fields = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__

_SCALARS = frozenset({str, int, float, bool, type(None)})
#: Whatever is built on one of them is none that can be registered.
_CONTAINERS = (dict, list, set, frozenset)
#: Forms from which a serializer might make objects of any class. Nothing is written in them, nothing is read.
_REVIVING = frozenset({"json", "pickle"})
#: What every `Overwrite` says that it is.
_OVERWRITE = "__overwrite__"
#: The C encoder takes what is plain and nothing else.
PLAIN_ONLY = (
    ormsgpack.OPT_PASSTHROUGH_BIG_INT
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_SUBCLASS
    | ormsgpack.OPT_PASSTHROUGH_TUPLE
    | ormsgpack.OPT_PASSTHROUGH_UUID
)
#: What comes of a value that was not stored with the kind that stands beside it.
_MISFITS = (
    *(AssertionError, AttributeError, KeyError, TypeError, ValueError),
    *(RecursionError, StopIteration),
)


class Values:
    """Translates values for one serializer."""

    def __init__(self, serde: SerializerProtocol, packs: Callable[[Any], bool]) -> None:
        self._serde = serde
        #: Whether Holdfast stores a value as it is: plain data, what it knows, what was registered with it.
        self._packs = packs

    def hoped(self, before: Mapping[str, Kind], value: Any, place: str) -> tuple[Any, Kind]:
        """Answer a value as data, and how to read it, without looking whether all of it can be stored.

        Whoever stores it looks anyway, and is told; then it is to be encoded.

        Args:
            before: the kinds of the checkpoint before; what had to be taken apart there has to be again.
        """
        if isinstance(before.get(place), dict):
            return self.encode(value, place)
        if _begins_with_message(value):
            found = _all_fields(value)
            return (found, "messages") if None not in found else self.encode(value, place)
        is_hopeful = type(value) is list or (
            type(value) is dict and not any(map(_begins_with_message, value.values()))
        )
        return (value, None) if is_hopeful else self.encode(value, place)

    def encode(self, value: Any, place: str) -> tuple[Any, Kind]:
        """Answer a value as data, and how to read it.

        Raises:
            UnsupportedTypeError: it would not come back as what it is.
        """
        kind = type(value)
        if kind in _SCALARS:
            return value, None
        if kind is bytearray:
            return bytes(value), "bytearray"
        if kind is TextAccessor:
            # What `message.text` answers: a text that may also be called, for programs of old.
            return str(value), None
        if kind in _MESSAGES and (fields := _fields(value)) is not None and self._packs(fields):
            return fields, "message"
        if _begins_with_message(value):
            found = _all_fields(value)
            if None not in found and (_is_plain(found) or self._packs(found)):
                return found, "messages"
        if kind in (list, dict) and _is_plain(value):
            return value, None
        return self._opened(value, place)

    def decode(self, value: Any, kind: Kind) -> Any:
        """Answer the value that data were made from.

        Raises:
            CheckpointSchemaError: it cannot be made any more, and nothing else is answered in its place.
        """
        if kind is None:
            return value
        try:
            return self._decoded(value, kind)
        except _MISFITS as fault:
            raise CheckpointSchemaError(
                f"how to read a stored value does not fit it ({type(fault).__name__}: {fault})",
                hint="Somebody else wrote to the store: run `holdfast doctor`.",
            ) from fault

    def _decoded(self, value: Any, kind: Kind) -> Any:
        if kind == "messages":
            return _messages(value)
        if kind == "message":
            return _messages([value])[0]
        if kind == "bytearray":
            return bytearray(value)
        if kind == "typed":
            return self._typed(value)
        assert isinstance(kind, dict)
        return self._members(value, kind)

    def _opened(self, value: Any, place: str) -> tuple[Any, Kind]:
        """Encode a value member by member, or as a whole where it has none."""
        if type(value) is dict and all(type(key) is str for key in value):
            return self._dict(value, place)
        if type(value) is list or type(value) is tuple:
            items = [self.encode(item, f"{place}[{at}]") for at, item in enumerate(value)]
            return [item for item, _ in items], {type(value).__name__: [kind for _, kind in items]}
        if type(value) is _DeltaSnapshot:
            inner, kind = self.encode(value.value, place)
            return inner, {"snapshot": kind}
        if type(value) is Send and value.timeout is None:
            inner, kind = self.encode(value.arg, place)
            return {"node": value.node, "arg": inner}, {"send": kind}
        if type(value) is Interrupt and value.response_schema is None:
            inner, kind = self.encode(value.value, place)
            return {"value": inner, "id": value.id}, {"interrupt": kind}
        if type(value) is Overwrite and value.type == _OVERWRITE:
            inner, kind = self.encode(value.value, place)
            return inner, {"overwrite": kind}
        if type(value) is Command:
            # As a whole, its tuples would come back as lists: the empty one, too, that `goto` is by default.
            members = {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
            inner, kind = self.encode(members, place)
            return inner, {"command": kind}
        if not isinstance(value, BaseMessage) and self._packs(value):
            return value, None
        return self._dumped(value, place), "typed"

    def _dict(self, value: dict[str, Any], place: str) -> tuple[Any, Kind]:
        members = {key: self.encode(item, f"{place}.{key}") for key, item in value.items()}
        kinds = {key: kind for key, (_, kind) in members.items() if kind is not None}
        return {key: item for key, (item, _) in members.items()}, {"dict": kinds} if kinds else None

    def _members(self, value: Any, kind: dict[str, Any]) -> Any:
        if "dict" in kind:
            kinds = kind["dict"]
            return {key: self.decode(item, kinds.get(key)) for key, item in value.items()}
        if "snapshot" in kind:
            return _DeltaSnapshot(self.decode(value, kind["snapshot"]))
        if "overwrite" in kind:
            return Overwrite(self.decode(value, kind["overwrite"]))
        if "send" in kind:
            return Send(value["node"], self.decode(value["arg"], kind["send"]))
        if "command" in kind:
            return Command(**self.decode(value, kind["command"]))
        if "interrupt" in kind:
            return Interrupt(self.decode(value["value"], kind["interrupt"]), value["id"])
        (name, kinds) = next(iter(kind.items()))
        items = [self.decode(item, inner) for item, inner in zip(value, kinds, strict=True)]
        return tuple(items) if name == "tuple" else items

    def _dumped(self, value: Any, place: str) -> dict[str, Any]:
        """Let LangGraph's serializer write a value, if it reads the same again."""
        try:
            kind, data = self._serde.dumps_typed(value)
            is_same = kind not in _REVIVING and self._reads_as(value, kind, data)
        except (TypeError, ValueError):
            is_same = False
        if is_same:
            return {"type": kind, "data": opened(data) if kind == "msgpack" else data, "class": _name(value)}
        raise UnsupportedTypeError(
            f"values of type {_name(value)} would not come back as such",
            place=place,
            hint=_way_out(value),
        )

    def _reads_as(self, value: Any, kind: str, data: bytes) -> bool:
        again = self._serde.loads_typed((kind, data))
        # Members that became something else write the same, and look different.
        return self._face(again, self._serde.dumps_typed(again)) == self._face(value, (kind, data))

    def _face(self, value: Any, written: tuple[str, bytes]) -> Any:
        def write(member: Any) -> tuple[str, bytes]:
            try:
                return self._serde.dumps_typed(member)
            except (TypeError, ValueError):
                # Only what it is in knows how to write it.
                return written

        return face_of(value, write)

    def _typed(self, value: Any) -> Any:
        again = self._loaded(value["type"], value["data"])
        if _name(again) != value["class"]:
            raise CheckpointSchemaError(
                f"a stored {value['class']} came back as {_name(again)}",
                hint="The class is gone, was changed, or is not allowed here: name it by types=[...].",
            )
        return again

    def _loaded(self, kind: str, data: Any) -> Any:
        if kind in _REVIVING:
            raise CheckpointSchemaError(
                f"a stored value claims to be {kind}, which this saver never wrote",
                hint="Somebody else wrote to the store: run `holdfast doctor`.",
            )
        try:
            return self._serde.loads_typed((kind, closed(data) if kind == "msgpack" else data))
        except Exception as problem:
            raise CheckpointSchemaError(
                f"LangGraph's serializer does not read a stored value ({problem})",
                hint="Open the saver with the serializer that wrote it.",
            ) from problem


def owned(value: Any) -> Any:
    """Copy data that are remembered: whoever gets them may change them."""
    kind = type(value)
    if kind is dict:
        return {key: item if type(item) in _SCALARS else owned(item) for key, item in value.items()}
    if kind is list:
        return [item if type(item) in _SCALARS else owned(item) for item in value]
    return value if kind in _SCALARS or kind is bytes else copy.deepcopy(value)


def _way_out(value: Any) -> str:
    """Answer what to do about a value that would not come back."""
    name = type(value).__name__
    plain = next((kind.__name__ for kind in _CONTAINERS if isinstance(value, kind)), None)
    if plain is not None:
        return f"Give the channel `{plain}(value)`: {name} is no class that types=[...] could name."
    return (
        f"Say so where the saver is opened: types=[{name}], and there too which classes it holds, be they "
        "messages."
    )


def _fields(message: BaseMessage) -> dict[str, Any] | None:
    """Answer what a message consists of, uncopied; None for one that has more than its class says."""
    return None if message.__pydantic_extra__ else message.__dict__


def _begins_with_message(value: Any) -> bool:
    return type(value) is list and bool(value) and type(value[0]) in _MESSAGES


def _all_fields(messages: list[Any]) -> list[dict[str, Any] | None]:
    """Answer what each message of a list consists of, None for what is none or has more than its class."""
    return [
        item.__dict__ if type(item) in _MESSAGES and not item.__pydantic_extra__ else None
        for item in messages
    ]


def _messages(stored: Iterable[Any]) -> list[BaseMessage]:
    """Make messages of what was stored of them; what does not fit its class as it is today is validated."""
    made: list[BaseMessage] = []
    #: By type, the fields of a message that were found to be those of its class: so are equal ones.
    fitting: dict[str, tuple[str, ...]] = {}
    for fields in stored:
        kind = fields.get("type") if type(fields) is dict else None
        cls = _BY_TYPE.get(kind) if type(kind) is str else None
        if cls is None or kind is None:
            raise CheckpointSchemaError("what is stored as a message is of no known type")
        names = tuple(fields)
        if names != fitting.get(kind):
            if fields.keys() != _FIELDS[cls]:
                made.append(_validated(cls, fields))
                continue
            fitting[kind] = names
        message = _new(cls)
        # As pydantic does for what is known to be right: it was when it was stored, and is verified.
        _set_dict(message, fields)
        _set_fields(message, set(_FIELDS[cls]))
        # Its own: who adds a field of his to a message finds room for it.
        _set_extra(message, {})
        _set_private(message, None)
        made.append(message)
    return made


def _validated(cls: type[BaseMessage], fields: dict[str, Any]) -> BaseMessage:
    try:
        return cls.model_validate(fields)
    except ValueError as problem:
        raise CheckpointSchemaError(
            f"a stored {cls.__name__} does not fit its class any more ({problem})",
            hint="Install the version of langchain-core that wrote it.",
        ) from problem


def _is_plain(value: Any) -> bool:
    try:
        ormsgpack.packb(value, None, PLAIN_ONLY)
    except (TypeError, ValueError):
        return False
    return True


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"
