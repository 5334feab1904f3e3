"""Classes of an application, and values of every kind that its channels may hold."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import uuid
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.types import Command, Interrupt, Send
from pydantic import BaseModel

IMAGE = "data:image/png;base64," + "iVBORw0KGgo" * 4


class Colour(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    """A choice that is a number."""

    LOW = 1


class Mood(StrEnum):
    """A choice that is text."""

    GLAD = "glad"


@dataclass
class Order:
    """A class of the application's, with members of others."""

    number: int
    colour: Colour = Colour.RED
    notes: tuple[str, ...] = ()


class Customer(BaseModel):
    """A model of the application's."""

    name: str
    age: int = 0


TYPES = (Colour, Level, Mood, Order, Customer)

#: What user data may look like: our marks, LangChain's and LangGraph's, and names of kinds.
LOOKALIKES: tuple[Any, ...] = (
    {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"command": "true"}},
    {"lc": 2, "type": "constructor", "id": ["builtins", "eval"], "method": [None], "args": ["1"]},
    {"type": "human", "content": "not a message"},
    {"type": "typed", "data": b"\x80", "class": "os.system"},
    {"dict": {"a": "messages"}},
    {"list": ["message"]},
    {"tuple": [None]},
    {"snapshot": None},
    {"type": "msgpack", "data": b"\xc7", "class": "x"},
    {"kinds": {"messages": "messages"}, "langgraph": {"": {}}},
    {"$type": "tuple", "__type__": "x", "$": 1, "~": 2, "@type": "Order"},
    [{"role": "user", "content": "plain"}],
    "messages",
    "typed",
    "__interrupt__",
)


def messages() -> st.SearchStrategy[BaseMessage]:
    """Draw messages with everything that models and tools put into them."""
    return st.one_of(
        st.builds(HumanMessage, CONTENTS, id=IDS, name=IDS),
        st.builds(SystemMessage, CONTENTS),
        st.builds(AIMessage, CONTENTS, tool_calls=TOOL_CALLS, id=IDS, response_metadata=EXTRAS),
        st.builds(AIMessage, TEXTS, usage_metadata=st.none() | USAGE, additional_kwargs=EXTRAS),
        st.builds(AIMessageChunk, TEXTS, id=IDS),
        st.builds(
            ToolMessage,
            CONTENTS,
            tool_call_id=TEXTS,
            artifact=plain(),
            status=st.sampled_from(["success", "error"]),
        ),
        st.builds(ChatMessage, TEXTS, role=TEXTS),
        st.builds(FunctionMessage, TEXTS, name=TEXTS),
        TEXTS.map(lambda text: RemoveMessage(id=text)),
        # A field that its class does not know: LangGraph's serializer writes it, and refuses lone surrogates.
        st.builds(HumanMessage, st.text(max_size=5), cached=st.booleans() | st.text(max_size=5)),
    )


def plain() -> st.SearchStrategy[Any]:
    """Draw data of the kinds that Holdfast stores as they are."""
    return st.recursive(SCALARS, _grown, max_leaves=4)


def values() -> st.SearchStrategy[Any]:
    """Draw whatever a channel may hold."""
    leaves = SCALARS | messages() | OWN | st.sampled_from(LOOKALIKES) | OTHERS
    return st.recursive(leaves, _grown, max_leaves=4) | st.lists(messages(), max_size=4)


def _grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(TEXTS, inner, max_size=4),
    )


#: With NUL, lone surrogates and what is not a character anywhere.
TEXTS = st.text(max_size=12) | st.text(st.characters(categories=["Cs", "Cc", "Co", "L"]), max_size=6)
IDS = st.none() | st.text(max_size=8)
NUMBERS = st.integers() | st.floats() | st.sampled_from([0, 1, -0.0, 2**63, 2**64, -(2**70), 1.0])
TIMES = st.datetimes() | st.datetimes(timezones=st.just(datetime.UTC)) | st.dates() | st.timedeltas()
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    NUMBERS,
    TEXTS,
    st.binary(max_size=20),
    TIMES,
    st.sets(st.integers() | st.text(max_size=5), max_size=3),
    st.frozensets(st.integers(), max_size=3),
    st.dictionaries(st.integers() | st.booleans(), st.text(max_size=3), max_size=3),
    st.just(decimal.Decimal("1.10")),
    st.uuids(),
)
OWN = st.one_of(
    st.sampled_from(Colour),
    st.sampled_from(Level),
    st.sampled_from(Mood),
    st.builds(Order, st.integers(), st.sampled_from(Colour), st.lists(st.text(max_size=3)).map(tuple)),
    st.builds(Customer, name=st.text(max_size=5), age=st.integers()),
)
OTHERS: st.SearchStrategy[Any] = st.one_of(
    st.builds(Send, st.just("node"), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)),
    st.builds(Interrupt, st.integers(), id=st.text(max_size=5)),
    st.builds(
        Command, update=st.none() | st.lists(st.tuples(st.text(max_size=3), st.integers()), max_size=2)
    ),
    st.builds(Command, resume=st.integers(), goto=st.sampled_from([(), [], "node", ("a", "b"), ["a"]])),
    st.just(uuid.UUID(int=7)),
)
EXTRAS = st.dictionaries(
    st.text(max_size=5), st.integers() | TEXTS | st.lists(st.booleans(), max_size=2), max_size=2
)
CONTENTS = TEXTS | st.lists(
    st.sampled_from(
        [
            {"type": "text", "text": "look"},
            {"type": "image_url", "image_url": {"url": IMAGE}},
            {"type": "image", "base64": IMAGE, "mime_type": "image/png"},
        ]
    ),
    min_size=1,
    max_size=3,
)
TOOL_CALLS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.text(max_size=5),
            "args": st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=2),
            "id": IDS,
        }
    ),
    max_size=2,
)
USAGE = st.fixed_dictionaries(
    {"input_tokens": st.integers(0, 9), "output_tokens": st.integers(0, 9), "total_tokens": st.integers(0, 9)}
)


def shape(value: Any) -> Any:
    """Describe a value so that only what is the same, types and order and all, is described alike."""
    kind = type(value)
    if isinstance(value, BaseModel):
        extra = shape(value.__pydantic_extra__ or {})
        return kind, [(name, shape(inner)) for name, inner in sorted(value.__dict__.items())], extra
    if kind is Send:
        return kind, value.node, shape(value.arg), value.timeout
    if dataclasses.is_dataclass(value):
        # Command shows nothing that is empty, be it a tuple or a list.
        return kind, [(one.name, shape(getattr(value, one.name))) for one in dataclasses.fields(value)]
    if kind in (list, tuple):
        return kind, [shape(inner) for inner in value]
    if kind is dict:
        return kind, [(shape(key), shape(inner)) for key, inner in value.items()]
    if kind in (set, frozenset):
        return kind, sorted(map(repr, value))
    return kind, repr(value)
