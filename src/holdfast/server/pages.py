"""The dashboard's files, as they lie in the package."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from holdfast.server.problems import Refusal, response_of

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
#: No file here has a longer name, and no disk could be asked for one.
_NAME_CHARS_MAX = 200


@dataclass(frozen=True, slots=True)
class Page:
    """One file, ready to be sent."""

    data: bytes
    zipped: bytes
    media_type: str
    etag: str


# Whoever asks for what is not there must not fill the memory with it.
@lru_cache(maxsize=256)
def page(name: str) -> Page | None:
    """Answer a file of the dashboard; None if there is none of that name."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.suffix not in _TYPES or len(name) > _NAME_CHARS_MAX:
        return None
    found = files("holdfast.server").joinpath("ui", *path.parts)
    if not found.is_file():
        return None
    data = found.read_bytes()
    etag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    return Page(data, gzip.compress(data, 9, mtime=0), _TYPES[path.suffix], etag)


async def _serve(request: Request) -> Response:
    found = page(request.path_params["name"] or "index.html")
    if found is None:
        return response_of(Refusal(404, "no_such_page", "there is no such page"), request.state.request_id)
    headers = {"ETag": found.etag, "Cache-Control": "no-cache", "Vary": "Accept-Encoding"}
    if request.headers.get("if-none-match") == found.etag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(found.zipped, 200, headers, found.media_type)
    return Response(found.data, 200, headers, found.media_type)


async def _home(request: Request) -> Response:
    return RedirectResponse("/ui/")


def routes() -> list[BaseRoute]:
    """Answer the routes of the dashboard."""
    return [
        Route("/", _home, methods=["GET"]),
        Route("/ui", _home, methods=["GET"]),
        Route("/ui/{name:path}", _serve, methods=["GET"]),
    ]
