"""Who may ask a server for what: scopes, roles that bundle them, and tokens."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from holdfast.domain import plainjson
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError, ConfigError
from holdfast.domain.time import parse_timestamp, timestamp_text

FOLDER = "access/"
#: Names of files with tokens begin so.
PREFIX = f"{FOLDER}token-"
#: Here lies what a server answered, for whoever asks again with the same key.
ANSWERS = f"{FOLDER}answers/"
#: Code of what is kept in the place of an answer: that there was one.
NOT_KEPT = "answer_not_kept"
_SUFFIX = ".json"
_ID_BYTES = 4
#: How much has to be random for one token: its id, and a secret of 256 bits.
RANDOM_BYTES = _ID_BYTES + 32
#: Begins with what scanners for leaked credentials can look for.
_TEXT = re.compile(r"hf_([0-9a-f]{8})_[A-Za-z0-9_-]{43}")


class Scope(StrEnum):
    """What a request may need."""

    READ = "read"
    STATE_READ = "state:read"
    #: Also what is masked in states; every use is told with its reason.
    STATE_REVEAL = "state:reveal"
    WRITE = "write"
    RECOVER = "recover"
    PRUNE = "prune"
    AUDIT_READ = "audit:read"
    AUDIT_EXPORT = "audit:export"
    METRICS = "metrics"
    ADMIN = "admin"


#: Admin may do everything; it is spelled out so that a listing shows it.
ROLES: Mapping[str, frozenset[Scope]] = {
    "viewer": frozenset({Scope.READ, Scope.STATE_READ}),
    "operator": frozenset(
        {Scope.READ, Scope.STATE_READ, Scope.WRITE, Scope.RECOVER, Scope.PRUNE, Scope.METRICS}
    ),
    "auditor": frozenset({Scope.READ, Scope.AUDIT_READ, Scope.AUDIT_EXPORT}),
    "metrics": frozenset({Scope.METRICS}),
    "admin": frozenset(Scope),
}


@dataclass(frozen=True, slots=True)
class Token:
    """What a store knows of a token: never its text.

    Attributes:
        id: short, part of the text, for people who look for one.
        name: who it is for; requests are told in the trail under this name.
        sha256: of the text.
        expires_at: the moment from which it is worth nothing; None if there is none.
    """

    id: str
    name: str
    sha256: str
    scopes: frozenset[Scope]
    created_at: datetime
    created_by: str | None = None
    expires_at: datetime | None = None

    @property
    def file(self) -> str:
        """Name of the store's file that keeps it."""
        return f"{PREFIX}{self.id}{_SUFFIX}"

    def is_text(self, text: str) -> bool:
        """Tell whether this is its text; how long that takes tells nothing."""
        return hmac.compare_digest(_sum(text), self.sha256)

    def has_expired(self, now: datetime) -> bool:
        """Tell whether it is worth nothing any more."""
        return self.expires_at is not None and self.expires_at <= now


def text_of(random: bytes) -> tuple[str, str, str]:
    """Make a token of RANDOM_BYTES random bytes: its id, its text, and the sum to keep."""
    token_id, secret = random[:_ID_BYTES].hex(), random[_ID_BYTES:]
    text = f"hf_{token_id}_{urlsafe_b64encode(secret).decode().rstrip('=')}"
    return token_id, text, _sum(text)


def file_of_text(text: str) -> str | None:
    """Name the file that keeps a token by its text; None if the text is that of no token."""
    found = _TEXT.fullmatch(text)
    return f"{PREFIX}{found[1]}{_SUFFIX}" if found else None


def scopes_of(words: Iterable[str]) -> frozenset[Scope]:
    """Answer the scopes that words mean, each a scope or a role.

    Raises:
        ConfigError: one is neither, or there is none.
    """
    found: set[Scope] = set()
    for word in words:
        if word in ROLES:
            found |= ROLES[word]
        elif word in Scope._value2member_map_:
            found.add(Scope(word))
        else:
            raise ConfigError(
                f"{word!r} is no scope and no role",
                hint=f"Scopes: {', '.join(Scope)}. Roles: {', '.join(ROLES)}.",
            )
    if not found:
        raise ConfigError("a token without a scope is good for nothing", hint=f"Roles: {', '.join(ROLES)}.")
    return frozenset(found)


def may(scopes: Collection[Scope], needed: Scope) -> bool:
    """Tell whether scopes are enough."""
    return needed in scopes or Scope.ADMIN in scopes


def encode_token(token: Token) -> bytes:
    """Write what a store keeps of a token."""
    fields = {
        "id": token.id,
        "name": token.name,
        "sha256": token.sha256,
        "scopes": sorted(token.scopes),
        "created_at": timestamp_text(token.created_at),
        "created_by": token.created_by,
        "expires_at": timestamp_text(token.expires_at) if token.expires_at else None,
    }
    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


def decode_token(data: bytes, name: str) -> Token:
    """Read what a store keeps of a token.

    Raises:
        CheckpointCorruptError: it is none, or that of another file.
    """
    try:
        token = _token(plainjson.loads(data, strict=True))
    except (CheckpointError, ValueError, KeyError, TypeError, AttributeError):
        raise CheckpointCorruptError("this is no token", place=name, hint=_HINT) from None
    if token.file != name:
        raise CheckpointCorruptError("the token is that of another file", place=name, hint=_HINT)
    return token


_HINT = "Revoke it with `holdfast token revoke`, and make a new one."


def _token(fields: Mapping[str, Any]) -> Token:
    return Token(
        str(fields["id"]),
        str(fields["name"]),
        str(fields["sha256"]),
        frozenset(Scope(word) for word in fields["scopes"]),
        parse_timestamp(fields["created_at"]),
        fields["created_by"],
        parse_timestamp(fields["expires_at"]) if fields["expires_at"] else None,
    )


def id_of_file(name: str) -> str:
    """Tell the id of a token by the name of its file."""
    return name.removeprefix(PREFIX).removesuffix(_SUFFIX)


def file_of_id(token_id: str) -> str:
    """Name the file that keeps a token by its id."""
    return f"{PREFIX}{token_id}{_SUFFIX}"


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
