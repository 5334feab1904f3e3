"""What watches a server asks it: whether it lives, whether it can work, and its numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from holdfast.application.kit import Kit
from holdfast.domain.access import Scope
from holdfast.domain.errors import CheckpointError
from holdfast.server.desk import Desk
from holdfast.server.problems import Refusal, encode, refusal_of, response_of
from holdfast.server.routing import Clerk

_FREE_BYTES_MIN = 64 * 1024 * 1024


def ready(kit: Kit) -> dict[str, Any]:
    """Try what every request needs; answer each check with what it found."""
    checks = {"store": _store_check(kit), "disk": _disk_check(kit)}
    return {"ready": all(check["ok"] for check in checks.values()), "checks": checks}


def _store_check(kit: Kit) -> dict[str, Any]:
    try:
        next(iter(kit.store.workflows()), None)
        return {"ok": True, "detail": "it answers"}
    except CheckpointError as problem:
        return {"ok": False, "detail": problem.message}


def _disk_check(kit: Kit) -> dict[str, Any]:
    space = kit.space() if kit.space is not None else None
    if space is None:
        return {"ok": True, "detail": "nobody can tell"}
    _, free_bytes = space
    return {"ok": free_bytes >= _FREE_BYTES_MIN, "detail": f"{free_bytes:,} bytes free"}


def routes(desk: Desk, clerk: Clerk) -> list[BaseRoute]:
    """Answer the routes that machines ask for."""

    async def live(request: Request) -> Response:
        return Response(b'{"live":true}', media_type="application/json")

    async def readiness(request: Request) -> Response:
        told = await anyio.to_thread.run_sync(partial(ready, desk.kit))
        return Response(encode(told), 200 if told["ready"] else 503, media_type="application/json")

    async def numbers(request: Request) -> Response:
        work = partial(_numbers, desk, clerk, request)
        try:
            body, media_type = await anyio.to_thread.run_sync(work)
        except Refusal as refusal:
            return response_of(refusal, request.state.request_id)
        except CheckpointError as error:
            return response_of(refusal_of(error), request.state.request_id)
        return Response(body, headers={"Content-Type": media_type})

    return [
        Route("/healthz", live, methods=["GET"]),
        Route("/readyz", readiness, methods=["GET"]),
        Route("/metrics", numbers, methods=["GET"]),
    ]


def _numbers(desk: Desk, clerk: Clerk, request: Request) -> tuple[bytes, str]:
    try:
        identity = desk.doorkeeper.identify(request.headers, request.cookies, request.method)
    except Refusal as refusal:
        if refusal.status == 401:
            clerk.turn_away(request, "metrics", is_told="authorization" in request.headers)
        raise
    if not identity.may(Scope.METRICS):
        raise Refusal(403, "scope_missing", f"this needs the scope {Scope.METRICS}")
    return desk.metrics.expose(request.headers.get("accept"))
