"""`holdfast token list`: who may ask the server, and what for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import looking

if TYPE_CHECKING:
    from holdfast.domain.access import Token


@click.command("list", cls=StoreCommand)
def command(call: Call) -> None:
    """List tokens, and what they are good for.

    \b
    Example:
      holdfast token list --json
    """
    with looking(call, audit=False) as service:
        tokens = service.tokens.listing()
    if call.output.as_json:
        call.output.data({"tokens": [_fields(token) for token in tokens]})
        return
    if not tokens:
        call.output.note("There is no token. Make one with `holdfast token create NAME --role viewer`.")
        return
    call.output.table(("TOKEN", "NAME", "CREATED (UTC)", "EXPIRES (UTC)", "SCOPES"), map(_row, tokens))


def _fields(token: Token) -> dict[str, Any]:
    from holdfast.domain.time import timestamp_text

    return {
        "id": token.id,
        "name": token.name,
        "scopes": sorted(token.scopes),
        "created_at": timestamp_text(token.created_at),
        "created_by": token.created_by,
        "expires_at": timestamp_text(token.expires_at) if token.expires_at else None,
    }


def _row(token: Token) -> tuple[str, ...]:
    made = f"{token.created_at:%Y-%m-%d %H:%M}"
    expires = f"{token.expires_at:%Y-%m-%d %H:%M}" if token.expires_at else "never"
    return (token.id, token.name, made, expires, " ".join(sorted(token.scopes)))
