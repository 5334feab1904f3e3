"""What every request passes before anybody reads it: names, origins, sizes; and headers."""

from __future__ import annotations

import re
import secrets
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.server.problems import Refusal, response_of
from holdfast.server.settings import Settings

#: Everything comes from here, nothing is framed, nothing is run that is no file of ours.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self';"
    " frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Guard:
    """Turns away what is not meant for this server, and gives each request an id."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else f"req-{secrets.token_hex(8)}"
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    answer.setdefault(name, value)
                answer.setdefault("Cache-Control", "no-store")
                answer["X-Request-Id"] = request_id
                traceparent = scope["state"].get("traceparent")
                if traceparent:
                    answer["traceparent"] = traceparent
            await send(message)

        refusal = self._refusal(headers, scope["method"])
        app = self._app if refusal is None else response_of(refusal, request_id)
        await app(scope, self._counted(receive), send_with_headers)

    def _refusal(self, headers: Headers, method: str) -> Refusal | None:
        host = headers.get("host", "")
        if _name_of(host) not in self._settings.allowed_hosts:
            # Another name that leads here: a page elsewhere may try to pass for us.
            return Refusal(
                421,
                "wrong_host",
                "this server is not known by that name",
                place=host[:100],
                hint="Start it with --allow-host NAME if it is.",
            )
        origin = headers.get("origin")
        if origin is not None and method not in ("GET", "HEAD") and _place_of(origin) != host:
            return Refusal(403, "wrong_origin", "another page may not act here", place=origin[:100])
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._settings.body_bytes:
            return self._too_large()
        return None

    def _too_large(self) -> Refusal:
        return Refusal(413, "body_too_large", f"a request has at most {self._settings.body_bytes} bytes")

    def _counted(self, receive: Receive) -> Receive:
        """Count what comes in pieces, whose length nobody told."""
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self._settings.body_bytes:
                    raise self._too_large()
            return message

        return counted


def _name_of(host: str) -> str:
    """Leave the port of a Host header out."""
    name = host.lower()
    if name.startswith("["):
        return name.partition("]")[0] + "]"
    return name.partition(":")[0]


def _place_of(origin: str) -> str:
    """Leave the scheme of an Origin header out; "" if it is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
