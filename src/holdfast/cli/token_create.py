"""`holdfast token create`: let somebody ask the server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import writing
from holdfast.cli.output import safe
from holdfast.domain.access import scopes_of


@click.command("create", cls=StoreCommand)
@click.argument("name")
@click.option(
    "--role",
    "--scope",
    "words",
    metavar="WORD",
    multiple=True,
    help="viewer, operator, auditor, metrics, admin, or a single scope. [default: viewer]",
)
@click.option(
    "--days", metavar="N", type=click.IntRange(1, 3650), help="Good for so many days. [default: for ever]"
)
@changes()
def command(call: Call, name: str, words: tuple[str, ...], days: int | None, change: Change) -> None:
    """Make a token; its text is shown once.

    What is done with it is told in the trail under NAME. Scopes: read,
    state:read, write, recover, prune, audit:read, audit:export, metrics, admin.

    \b
    Example:
      holdfast token create on-call --role operator --days 30
    """
    scopes = sorted(scopes_of(words or ("viewer",)))
    if change.dry_run:
        text = f"Would make a token for {safe(name)}: {', '.join(scopes)}"
        tell_plan(call.output, text, name=name, scopes=scopes)
        return
    expires_at = datetime.now(UTC) + timedelta(days=days) if days else None
    with writing(call, reason=change.reason) as service:
        token, text = service.tokens.create(name, scopes, expires_at=expires_at)
    if call.output.as_json:
        call.output.data({"id": token.id, "name": name, "scopes": scopes, "token": text})
        return
    call.output.line(text)
    call.output.note(f"Token {token.id} for {safe(name)}: {', '.join(scopes)}. It is not shown again.")
