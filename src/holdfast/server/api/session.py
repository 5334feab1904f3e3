"""Signing a browser in and out, and telling a page who it works for."""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.domain.access import Scope
from holdfast.server.desk import Desk
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.problems import Refusal


class SignIn(msgspec.Struct, forbid_unknown_fields=True):
    """What a browser signs in with: a token, or the key that was printed when the server began."""

    token: str


class Who(msgspec.Struct):
    """Whoever asks, and what that one may do."""

    name: str
    scopes: list[str]
    #: To be sent back with everything that changes something; empty for a token.
    csrf: str
    store: str
    is_read_only: bool
    version: str


def sign_in(desk: Desk, asked: Asked[None, SignIn]) -> Answer:
    """Begin a browser's session."""
    identity = desk.doorkeeper.recognise(asked.body.token)
    if identity is None:
        raise Refusal(401, "unauthenticated", "the token is not valid, was revoked, or has expired")
    key, session = desk.doorkeeper.sessions.begin(identity, asked.body.token)
    cookie = f"{desk.doorkeeper.cookie}={key}; {_attributes(desk)}"
    return Answer(_who(desk, identity.name, identity.scopes, session.csrf), 201, {"Set-Cookie": cookie})


def sign_out(desk: Desk, asked: Asked[None, None]) -> Answer:
    """End a browser's session."""
    desk.doorkeeper.sessions.end(cookie_of(desk, asked))
    gone = f"{desk.doorkeeper.cookie}=; {_attributes(desk)}; Max-Age=0"
    return Answer(None, 204, {"Set-Cookie": gone})


def _attributes(desk: Desk) -> str:
    return "HttpOnly; SameSite=Strict; Path=/" + ("; Secure" if desk.settings.is_secure else "")


def who(desk: Desk, asked: Asked[None, None]) -> Who:
    """Tell whoever asks what is known about that one."""
    session = desk.doorkeeper.sessions.of(cookie_of(desk, asked)) if asked.identity.is_cookie else None
    csrf = session.csrf if session is not None else ""
    return _who(desk, asked.identity.name, asked.identity.scopes, csrf)


def cookie_of(desk: Desk, asked: Asked[Any, Any]) -> str | None:
    """Find the session's cookie among those that were sent."""
    wanted = desk.doorkeeper.cookie
    for pair in asked.headers.get("cookie", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == wanted:
            return value
    return None


def _who(desk: Desk, name: str, scopes: frozenset[Scope], csrf: str) -> Who:
    from holdfast import __version__

    return Who(name, sorted(scopes), csrf, desk.kit.store.url, desk.kit.store.read_only, __version__)


OPERATIONS = (
    Operation(
        "signIn",
        "POST",
        "/session",
        None,
        "Sign a browser in.",
        sign_in,
        body=SignIn,
        result=Who,
        status=201,
        tag="session",
        problems={401: "The token is not known here."},
    ),
    Operation(
        "whoAmI",
        "GET",
        "/session",
        Scope.READ,
        "Tell who asks, and what that one may do.",
        who,
        result=Who,
        tag="session",
    ),
    Operation(
        "signOut",
        "DELETE",
        "/session",
        Scope.READ,
        "Sign a browser out.",
        sign_out,
        status=204,
        tag="session",
    ),
)
