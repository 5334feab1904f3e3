"""The whole server as one ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from holdfast.server import health, pages
from holdfast.server.desk import Desk
from holdfast.server.guard import Guard
from holdfast.server.openapi import describe
from holdfast.server.problems import Refusal, encode, response_of
from holdfast.server.routing import PREFIX, Clerk, paths
from holdfast.server.table import OPERATIONS


def build(desk: Desk) -> ASGIApp:
    """Put the server of a store together."""
    description = encode(describe(OPERATIONS))
    clerk = Clerk(desk)

    async def openapi(request: Request) -> Response:
        return Response(description, media_type="application/json")

    @asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        try:
            async with desk.living():
                yield
        finally:
            clerk.close()

    routes: list[BaseRoute] = [
        Route(f"{PREFIX}/openapi.json", openapi, methods=["GET"]),
        *paths(OPERATIONS, clerk),
        *health.routes(desk, clerk),
        *pages.routes(),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, settings=desk.settings)],
        exception_handlers={Refusal: _refused, HTTPException: _not_found},
        lifespan=living,
    )


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return response_of(error, request.state.request_id)


async def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "no_such_path", 405: "method_not_allowed"}.get(error.status_code, "refused")
    refusal = Refusal(
        error.status_code,
        code,
        "there is nothing here",
        hint=f"See {PREFIX}/openapi.json.",
        headers=error.headers,
    )
    return response_of(refusal, request.state.request_id)
