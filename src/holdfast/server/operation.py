"""An operation of the HTTP API as one value: what routes, checks, describes and tests it reads this."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from holdfast.domain.access import Scope, may

Query = TypeVar("Query")
Body = TypeVar("Body")

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Identity:
    """Whoever asks: a name for the trail, and what that one may do."""

    name: str
    scopes: frozenset[Scope]
    #: Whether a cookie says so, which a browser sends along unasked.
    is_cookie: bool = False

    def may(self, scope: Scope) -> bool:
        """Tell whether this is allowed."""
        return may(self.scopes, scope)


@dataclass(frozen=True, slots=True)
class Asked(Generic[Query, Body]):
    """One request, checked: who asks for what."""

    path: Mapping[str, str]
    query: Query
    body: Body
    identity: Identity
    request_id: str
    #: By lower-case names.
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back where more is to be said than the result."""

    #: What msgspec can write as JSON, or bytes that go as they are.
    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON
    #: Pieces that follow one another for as long as both sides live.
    stream: AsyncIterator[bytes] | None = None


class NoQuery(msgspec.Struct):
    """The parameters of an operation that has none: any is one too many."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path.

    Attributes:
        name: unique, for the description and for logs: `listRuns`.
        path: below `/v1`, with names in braces: `/runs/{run}`.
        scope: what whoever asks must be allowed; None: nothing.
        one_of: of these scopes one is needed as well; which, only the handler can tell.
        summary: one line.
        handle: answers a request, in a thread: it may wait for the disk. Given the desk and what is asked.
        query: a msgspec Struct, the parameters with their defaults and limits.
        body: a msgspec Struct, what is sent along.
        result: type of what comes back as JSON; None if nothing does.
        status: of success.
        acts: whether it changes something: then a reason and an Idempotency-Key go along.
        also: other media types that Accept may ask for.
        alias: whether it is known without `/v1` too.
        is_stream: whether the answer goes on for as long as both sides live.
        has_ranges: whether Range may ask for a part of the answer.
        needs_version: whether If-Match has to name what is changed.
    """

    name: str
    method: str
    path: str
    scope: Scope | None
    summary: str
    handle: Callable[[Any, Any], Any]
    query: type[Any] | None = None
    body: type[Any] | None = None
    result: Any = None
    status: int = 200
    acts: bool = False
    one_of: tuple[Scope, ...] = ()
    also: tuple[str, ...] = ()
    alias: bool = False
    is_stream: bool = False
    has_ranges: bool = False
    needs_version: bool = False
    tag: str = ""
    #: Statuses that it may end with beside success and those that all share, with what they mean.
    problems: Mapping[int, str] = field(default_factory=dict)
