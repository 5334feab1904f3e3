"""Who asks: a bearer token of the store, the key that was printed at the start, or a browser's session."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.application.access import Tokens
from holdfast.domain.access import ROLES
from holdfast.server.operation import Identity
from holdfast.server.problems import Refusal

_COOKIE: Final = "holdfast_session"
CSRF_HEADER: Final = "x-holdfast-csrf"
_SESSION_SECONDS = 12 * 3600.0
_SESSIONS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that signed in."""

    identity: Identity
    csrf: str
    #: The text of the token it signed in with: when that is revoked the session ends.
    credential: str
    ends: float


class Sessions:
    """Browsers that signed in, in memory: a restart signs all of them out."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._sessions: OrderedDict[str, Session] = OrderedDict()

    def begin(self, identity: Identity, credential: str) -> tuple[str, Session]:
        """Sign a browser in; answer what its cookie says."""
        key = secrets.token_urlsafe(32)
        cookie_identity = Identity(identity.name, identity.scopes, is_cookie=True)
        session = Session(
            cookie_identity, secrets.token_urlsafe(24), credential, time.monotonic() + _SESSION_SECONDS
        )
        with self._mutex:
            self._sessions[key] = session
            while len(self._sessions) > _SESSIONS_MAX:
                self._sessions.popitem(last=False)
        return key, session

    def of(self, key: str | None) -> Session | None:
        """Answer the session of a cookie, if it has one that goes on."""
        with self._mutex:
            session = self._sessions.get(key or "")
        return session if session is not None and session.ends > time.monotonic() else None

    def end(self, key: str | None) -> None:
        """Sign a browser out."""
        with self._mutex:
            self._sessions.pop(key or "", None)


class Doorkeeper:
    """Recognises whoever asks."""

    def __init__(self, tokens: Tokens, owner: str) -> None:
        self._tokens = tokens
        #: Browsers send cookies to every port of a machine: two servers must not take each other's.
        self.cookie = f"{_COOKIE}_{secrets.token_hex(4)}"
        self.sessions = Sessions()
        #: Lets whoever started the server in, and ends with it.
        self.key = f"hf_start_{secrets.token_urlsafe(32)}"
        self._owner = Identity(owner, ROLES["admin"])

    def recognise(self, credential: str) -> Identity | None:
        """Answer who a token, or the key of this start, belongs to."""
        if hmac.compare_digest(credential.encode(), self.key.encode()):
            return self._owner
        token = self._tokens.recognise(credential)
        return None if token is None else Identity(token.name, token.scopes)

    def identify(self, headers: Mapping[str, str], cookies: Mapping[str, str], method: str) -> Identity:
        """Answer who asks.

        Raises:
            Refusal: nobody who is known here; or a browser may have been led to ask by another page.
        """
        scheme, _, credential = headers.get("authorization", "").partition(" ")
        if scheme:
            found = self.recognise(credential.strip()) if scheme.lower() == "bearer" else None
            if found is None:
                raise _unknown("the token is not valid, was revoked, or has expired")
            return found
        session = self.sessions.of(cookies.get(self.cookie))
        if session is None or self.recognise(session.credential) is None:
            raise _unknown("a bearer token is needed")
        if method not in ("GET", "HEAD") and not hmac.compare_digest(
            headers.get(CSRF_HEADER, "").encode(), session.csrf.encode()
        ):
            raise Refusal(403, "csrf_missing", f"a browser's session has to send {CSRF_HEADER}")
        return session.identity


def _unknown(detail: str) -> Refusal:
    return Refusal(
        401,
        "unauthenticated",
        detail,
        hint="Make one with `holdfast token create`, and send `Authorization: Bearer TOKEN`.",
        headers={"WWW-Authenticate": 'Bearer realm="holdfast"'},
    )
