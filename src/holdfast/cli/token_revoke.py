"""`holdfast token revoke`: let a token be worth nothing from now on."""

from __future__ import annotations

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import looking, writing
from holdfast.cli.output import safe
from holdfast.domain.errors import CheckpointNotFoundError


@click.command("revoke", cls=StoreCommand)
@click.argument("token_id", metavar="TOKEN")
@changes()
def command(call: Call, token_id: str, change: Change) -> None:
    """Let a token be worth nothing from now on.

    TOKEN is its id, which is also the part of its text between the underscores.

    \b
    Example:
      holdfast token revoke 3f2a91c0 --reason "left the team"
    """
    if change.dry_run:
        _plan(call, token_id)
        return
    with writing(call, reason=change.reason) as service:
        service.tokens.revoke(token_id)
    if call.output.as_json:
        call.output.data({"id": token_id, "revoked": True})
    else:
        call.output.line(f"Revoked token {safe(token_id)}")


def _plan(call: Call, token_id: str) -> None:
    """Tell which token would be revoked."""
    with looking(call, audit=False) as service:
        found = [token for token in service.tokens.listing() if token.id == token_id]
    if not found:
        raise CheckpointNotFoundError(
            "there is no such token", place=token_id, hint="See `holdfast token list`."
        )
    name = found[0].name
    tell_plan(call.output, f"Would revoke token {token_id} of {safe(name)}", id=token_id, name=name)
