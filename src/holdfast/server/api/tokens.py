"""The tokens that requests are made with: listed, made and revoked by whoever administers the store."""

from __future__ import annotations

import warnings
from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta

from holdfast.domain.access import Scope, Token
from holdfast.domain.errors import StoreDamageWarning
from holdfast.domain.time import timestamp_text
from holdfast.server.acting import CHANGING, Acting, Name, begin
from holdfast.server.desk import Desk
from holdfast.server.idempotency import ShownOnce
from holdfast.server.operation import Asked, Operation
from holdfast.server.slices import Part, part_of
from holdfast.server.totals import Total

#: A scope or a role.
_Word = Annotated[str, Meta(min_length=1, max_length=40)]


class TokenRow(msgspec.Struct):
    """What is known of a token: never its text."""

    id: str
    name: str
    scopes: list[str]
    created_at: str
    created_by: str | None
    expires_at: str | None
    has_expired: bool


class TokenPage(msgspec.Struct):
    """Some tokens, the oldest first."""

    items: list[TokenRow]
    next_cursor: str | None
    total: Total = UNSET


class NewToken(Acting):
    """Who a token is for, and what it allows."""

    name: Name
    #: Scopes and roles.
    scopes: Annotated[list[_Word], Meta(min_length=1, max_length=20)]
    #: With its time zone.
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None


class MadeToken(msgspec.Struct):
    """A token that was made."""

    token: TokenRow
    #: Shown once: null where the same answer is given again.
    text: str | None


def list_tokens(desk: Desk, asked: Asked[Part, None]) -> TokenPage:
    """List the tokens of the store."""
    with warnings.catch_warnings():
        # A damaged one is worth nothing; `holdfast token list` tells of it.
        warnings.simplefilter("ignore", StoreDamageWarning)
        tokens = desk.service.tokens.listing()
    chosen, cursor, total = part_of(tokens, asked.query, lambda token: token.id)
    return TokenPage([_row(desk, token) for token in chosen], cursor, total)


def create_token(desk: Desk, asked: Asked[None, NewToken]) -> ShownOnce:
    """Make a token; its text is in this answer and nowhere else."""
    body = asked.body
    begin(desk, asked, "createToken")
    token, text = desk.service.tokens.create(body.name, body.scopes, expires_at=body.expires_at)
    row = _row(desk, token)
    return ShownOnce(MadeToken(row, text), 201, kept=MadeToken(row, None))


def revoke_token(desk: Desk, asked: Asked[None, Acting]) -> TokenGone:
    """Let a token be worth nothing from now on."""
    begin(desk, asked, "revokeToken")
    desk.service.tokens.revoke(asked.path["token"])
    return TokenGone(asked.path["token"])


class TokenGone(msgspec.Struct):
    """A token that was revoked."""

    id: str


def _row(desk: Desk, token: Token) -> TokenRow:
    return TokenRow(
        token.id,
        token.name,
        sorted(token.scopes),
        timestamp_text(token.created_at),
        token.created_by,
        timestamp_text(token.expires_at) if token.expires_at else None,
        token.has_expired(desk.kit.clock.now()),
    )


OPERATIONS = (
    Operation(
        "listTokens",
        "GET",
        "/tokens",
        Scope.ADMIN,
        "List the tokens of the store, never their texts.",
        list_tokens,
        query=Part,
        result=TokenPage,
        tag="tokens",
    ),
    Operation(
        "createToken",
        "POST",
        "/tokens",
        Scope.ADMIN,
        "Make a token; its text is shown once.",
        create_token,
        body=NewToken,
        result=MadeToken,
        status=201,
        acts=True,
        tag="tokens",
        problems=CHANGING,
    ),
    Operation(
        "revokeToken",
        "DELETE",
        "/tokens/{token}",
        Scope.ADMIN,
        "Let a token be worth nothing from now on.",
        revoke_token,
        body=Acting,
        result=TokenGone,
        acts=True,
        tag="tokens",
        problems=CHANGING,
    ),
)
