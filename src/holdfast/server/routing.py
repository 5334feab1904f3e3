"""From a request to its operation and back: who asks, what was sent, the work, the answer."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import unquote, urlencode

import anyio
import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from holdfast.application.observing import found_invalid, spanned
from holdfast.application.trailing import acting_as
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError, CheckpointQuarantinedError
from holdfast.domain.telemetry import FoundBy
from holdfast.server.desk import Desk
from holdfast.server.idempotency import Ledger
from holdfast.server.operation import JSON, Answer, Asked, Identity, NoQuery, Operation
from holdfast.server.places import Places
from holdfast.server.problems import Detail, Refusal, encode, refusal_of, response_of
from holdfast.server.rates import Rates

PREFIX = "/v1"
#: The span around everything that a request has done.
REQUEST = "holdfast.request"
NOBODY = Identity("nobody", frozenset())
#: So many at once are asked who they are: work that takes long keeps nobody from that.
_DOOR_THREADS = 4
_LOG = logging.getLogger("holdfast")


class Path(BaseRoute):
    """One path with its operations. Names are matched before they are decoded: `%2F` is no slash."""

    def __init__(self, path: str, operations: Iterable[Operation], clerk: Clerk) -> None:
        self.path = path
        self._steps = path.split("/")[1:]
        self._operations = {operation.method: operation for operation in operations}
        self._clerk = clerk
        if "GET" in self._operations:
            self._operations.setdefault("HEAD", self._operations["GET"])

    def matches(self, scope: Scope) -> tuple[Match, dict[str, Any]]:
        """Tell whether a request is for this path."""
        if scope["type"] != "http":
            return Match.NONE, {}
        names = self._names(scope)
        return (Match.NONE, {}) if names is None else (Match.FULL, {"path_params": names})

    def _names(self, scope: Scope) -> dict[str, str] | None:
        steps = _raw_path(scope).split("/")[1:]
        if len(steps) != len(self._steps):
            return None
        names = {}
        for pattern, step in zip(self._steps, steps, strict=True):
            if pattern.startswith("{"):
                names[pattern[1:-1]] = unquote(step, errors="surrogateescape")
            elif pattern != step:
                return None
        return names if all(names.values()) else None

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for this path."""
        operation = self._operations.get(scope["method"])
        if operation is None:
            allowed = ", ".join(sorted(self._operations))
            refusal = Refusal(405, "method_not_allowed", f"here are: {allowed}", headers={"Allow": allowed})
            response = response_of(refusal, scope["state"]["request_id"])
        else:
            response = await self._clerk.answer(operation, Request(scope, receive))
        await response(scope, receive, send)


class Clerk:
    """Takes requests in, lets them be worked on, and writes the answers."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._rates = Rates(desk.settings.rate)
        #: Who guesses tokens is slowed down by the address.
        self._failures = Rates(desk.settings.failure_rate)
        self._places = Places(desk.settings.threads)
        self._door = ThreadPoolExecutor(_DOOR_THREADS, thread_name_prefix="holdfast-door")
        self._ledger = Ledger(desk.kit)

    def close(self) -> None:
        """Let nothing begin any more."""
        self._places.close()
        self._door.shutdown(wait=False, cancel_futures=True)

    async def answer(self, operation: Operation, request: Request) -> Response:
        """Answer one request, whatever comes of it."""
        began = time.perf_counter()
        request_id: str = request.scope["state"]["request_id"]
        try:
            response = await self._worked(operation, request, request_id)
        except Refusal as refusal:
            response = response_of(refusal, request_id)
        except CheckpointError as error:
            response = response_of(refusal_of(error), request_id)
        except ClientDisconnect:
            response = Response(status_code=499)
        except Exception:
            _LOG.exception("%s failed (%s)", operation.name, request_id)
            response = response_of(_unexpected(), request_id)
        seconds = time.perf_counter() - began
        self._desk.metrics.observe_request(operation.path, request.method, response.status_code, seconds)
        _log_request(operation, request, response.status_code, seconds)
        return response

    async def _worked(self, operation: Operation, request: Request, request_id: str) -> Response:
        limit_seconds = self._desk.settings.request_seconds
        with anyio.move_on_after(limit_seconds):
            identity = await self._admitted(operation, request, request_id)
            asked = await self._asked(operation, request, identity, request_id)
            return await self._places.work(identity.name, partial(self._work, operation, request, asked))
        raise _took_too_long(operation, limit_seconds)

    async def _admitted(self, operation: Operation, request: Request, request_id: str) -> Identity:
        """Find out who asks, and whether that one may, now.

        Raises:
            Refusal: not known, not allowed, or too often.
        """
        if operation.scope is None:
            self._check_rate(self._rates, f"nobody at {address_of(request)}")
            return NOBODY
        look = partial(self._look, request, operation, request_id)
        return await asyncio.wrap_future(self._door.submit(look))

    def _look(self, request: Request, operation: Operation, request_id: str) -> Identity:
        """Recognise whoever asks; runs in a thread, because tokens lie in the store."""
        try:
            identity = self._desk.doorkeeper.identify(request.headers, request.cookies, request.method)
        except Refusal as refusal:
            if refusal.status == 401:
                self.turn_away(request, operation.name, is_told="authorization" in request.headers)
            raise
        request.state.actor = identity.name
        self._check_rate(self._rates, identity.name)
        missing = _missing(operation, identity)
        if missing:
            facts = {"via": "http", "operation": operation.name, "scope": missing}
            with self._desk.on_behalf(identity, request_id):
                self._note(AuditType.OPERATION_REFUSED, facts, Outcome.REFUSED)
            raise Refusal(
                403,
                "scope_missing",
                f"this needs the scope {missing}",
                hint=f"{identity.name} has: {', '.join(sorted(identity.scopes))}.",
            )
        return identity

    def turn_away(self, request: Request, operation: str, *, is_told: bool) -> None:
        """Slow down whoever guesses, and tell of it; not more often than one may guess.

        Raises:
            Refusal: that one guesses too often.
        """
        self._check_rate(self._failures, address_of(request))
        if is_told:
            facts = {"via": "http", "operation": operation}
            # Whoever it was, it was not whoever started the server.
            with acting_as(NOBODY.name):
                self._note(AuditType.AUTHENTICATION_FAILED, facts, Outcome.FAILURE)

    def _note(self, type: AuditType, facts: Mapping[str, str], outcome: Outcome) -> None:
        try:
            self._desk.note(type, None, facts, outcome=outcome)
        except CheckpointError as problem:
            # It is refused all the same.
            _LOG.warning("a refusal is not in the trail: %s", problem)

    def _check_rate(self, rates: Rates, who: str) -> None:
        wait = rates.wait_seconds(who)
        if wait:
            seconds = str(math.ceil(wait))
            raise Refusal(429, "too_many_requests", "too many requests", headers={"Retry-After": seconds})

    async def _asked(
        self, operation: Operation, request: Request, identity: Identity, request_id: str
    ) -> Asked[Any, Any]:
        _check_names(request.path_params)
        query = _query(operation.query or NoQuery, request)
        body = None if operation.body is None else _body(operation.body, await request.body(), request)
        headers = {name.lower(): value for name, value in request.headers.items()}
        if request.method == "HEAD":
            # It tells of the whole.
            headers.pop("range", None)
        return Asked(request.path_params, query, body, identity, request_id, headers)

    def _work(self, operation: Operation, request: Request, asked: Asked[Any, Any]) -> Response:
        """Work in a thread, and write the answer there too: a large one would keep all others waiting."""
        try:
            answer = self._traced(operation, request, asked)
            response = _response(operation, answer, is_head=request.method == "HEAD")
            cursor = getattr(answer, "next_cursor", None)
            if cursor is not None:
                response.headers["Link"] = f'<{_next_page(request, cursor)}>; rel="next"'
            return response
        except Refusal as refusal:
            if refusal.status == 401:
                self.turn_away(request, operation.name, is_told=True)
            raise

    def _traced(self, operation: Operation, request: Request, asked: Asked[Any, Any]) -> Any:
        """Let all that is done be inside one span, which says whose request it goes on with."""
        about = {"http.request.method": request.method, "http.route": PREFIX + operation.path}
        with spanned(self._desk.kit, REQUEST, about) as span:
            span.link(asked.headers.get("traceparent", ""))
            request.state.traceparent = span.traceparent
            return self._done(operation, asked)

    def _done(self, operation: Operation, asked: Asked[Any, Any]) -> Any:
        """Let the handler work on behalf of whoever asks; what acts is done once for a key."""
        handle = partial(self._handled, operation, asked)
        with self._desk.on_behalf(asked.identity, asked.request_id):
            if not operation.acts:
                return handle()
            try:
                self._desk.check_writable()
                return self._ledger.once(operation, asked, handle)
            except CheckpointError as error:
                raise refusal_of(error) from error

    def _handled(self, operation: Operation, asked: Asked[Any, Any]) -> Any:
        """Let the handler work; whatever goes wrong is a refusal."""
        try:
            return operation.handle(self._desk, asked)
        except CheckpointError as error:
            self._count_damage(operation, error)
            raise refusal_of(error) from error
        except Refusal:
            raise
        except Exception as error:
            _LOG.exception("%s failed (%s)", operation.name, asked.request_id)
            raise _unexpected() from error

    def _count_damage(self, operation: Operation, error: CheckpointError) -> None:
        """Count wrong bytes that a look met; whoever acts counts them itself, and quarantine did before."""
        is_wrong = isinstance(error, CheckpointCorruptError)
        if is_wrong and not isinstance(error, CheckpointQuarantinedError) and operation.method == "GET":
            found_invalid(self._desk.kit, FoundBy.RESTORE)


def _log_request(operation: Operation, request: Request, status: int, seconds: float) -> None:
    """Write who asked for what, and what came of it; whoever is turned away stands out."""
    facts = {
        "method": request.method,
        "route": operation.path,
        "status": status,
        "ms": round(seconds * 1000, 1),
        "request_id": request.scope["state"]["request_id"],
        "actor": getattr(request.state, "actor", None),
    }
    level = logging.WARNING if status in (401, 403) else logging.INFO
    _LOG.log(level, "%s %s: %d", request.method, operation.path, status, extra=facts)


def _missing(operation: Operation, identity: Identity) -> str:
    """Name the scope that an identity has not and needs; "" if it has all."""
    if operation.scope is not None and not identity.may(operation.scope):
        return str(operation.scope)
    return (
        ""
        if not operation.one_of or any(map(identity.may, operation.one_of))
        else " or ".join(operation.one_of)
    )


def address_of(request: Request) -> str:
    """Tell where a request comes from; whoever has one IPv6 address has all of its network."""
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    return str(ipaddress.ip_network((int(address), 64), strict=False))


def _check_names(names: Mapping[str, str]) -> None:
    """Refuse what no answer could repeat.

    Raises:
        Refusal: a name in the path is no text.
    """
    for name in names.values():
        if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise Refusal(400, "invalid_id", "this is no UTF-8", place=ascii(name)[:80])


def _next_page(request: Request, cursor: str) -> str:
    """Write where a listing goes on, as a reference from this server's root."""
    rest = [(name, value) for name, value in request.query_params.multi_items() if name != "cursor"]
    return f"{_raw_path(request.scope)}?{urlencode([*rest, ('cursor', cursor)])}"


def _raw_path(scope: Scope) -> str:
    """Answer the path of a request as it was written."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1")


def _unexpected() -> Refusal:
    said = "an unexpected failure; the server's log has it under the request's id"
    return Refusal(500, "unexpected", said)


def _took_too_long(operation: Operation, limit_seconds: float) -> Refusal:
    hint = "Ask for less, or again."
    if operation.acts:
        hint = "It may go on and be done: ask again with the same Idempotency-Key to hear what came of it."
    said = f"the answer took more than {limit_seconds:g} seconds"
    # What was not read of the request would be taken for the next one.
    return Refusal(503, "took_too_long", said, hint=hint, headers={"Retry-After": "5", "Connection": "close"})


def _query(kind: type[Any], request: Request) -> Any:
    """Read the parameters of a request; one that nobody knows is a mistake."""
    given: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise _invalid([Detail("it is given twice", name)])
        given[name] = value
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    unknown = [Detail("there is no such parameter", name) for name in given if name not in known]
    if unknown:
        raise _invalid(unknown)
    try:
        read = msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as fault:
        raise _invalid([_detail(fault)]) from None
    # Who wants the default leaves a parameter out; the word `null` is no value.
    nothing = [Detail("it has no value", name) for name in given if getattr(read, name, "") is None]
    if nothing:
        raise _invalid(nothing)
    return read


def _body(kind: type[Any], data: bytes, request: Request) -> Any:
    """Read what was sent along."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if data and media_type != JSON:
        raise Refusal(415, "unsupported_media_type", f"send {JSON}", place=media_type[:100])
    try:
        return msgspec.json.decode(data or b"{}", type=kind)
    except msgspec.ValidationError as fault:
        raise _invalid([_detail(fault)], status=422) from None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as fault:
        raise Refusal(400, "invalid_json", f"this is no JSON ({fault})") from None


def _detail(fault: msgspec.ValidationError) -> Detail:
    said, _, place = str(fault).partition(" - at `$")
    return Detail(said, place.rstrip("`").lstrip("."))


def _invalid(errors: list[Detail], status: int = 400) -> Refusal:
    first = errors[0]
    said = f"{first.place}: {first.message}" if first.place else first.message
    return Refusal(status, "invalid_request", said, errors=errors)


def _response(operation: Operation, answer: Any, *, is_head: bool) -> Response:
    """Write what a handler answered."""
    if not isinstance(answer, Answer):
        answer = Answer(answer, operation.status)
    if answer.stream is not None and is_head:
        # It has no end, and nobody would hear it.
        return Response(None, answer.status, answer.headers, answer.media_type)
    if answer.stream is not None:
        return StreamingResponse(answer.stream, answer.status, answer.headers, answer.media_type)
    if answer.status in (204, 304):
        return Response(status_code=answer.status, headers=answer.headers)
    data = answer.body if isinstance(answer.body, bytes) else encode(answer.body)
    return Response(data, answer.status, answer.headers, answer.media_type)


def paths(operations: Iterable[Operation], clerk: Clerk) -> list[BaseRoute]:
    """Answer a route for each path, and one without the version where an operation is known so, too."""
    by_path: dict[str, list[Operation]] = {}
    for operation in operations:
        names = [PREFIX + operation.path, *([operation.path] if operation.alias else [])]
        for name in names:
            by_path.setdefault(name, []).append(operation)
    return [Path(path, found, clerk) for path, found in by_path.items()]
