"""`holdfast keys rotate`: wrap all data keys by another key-encryption key."""

from __future__ import annotations

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import writing


@click.command("rotate", cls=StoreCommand)
@click.option(
    "--new", "source", required=True, metavar="SOURCE", help="file:PATH, env:NAME or command:PROGRAM."
)
def command(call: Call, source: str) -> None:
    """Wrap all data keys by a new key-encryption key.

    Nothing else in the store changes, and others may write meanwhile: give
    them the new key as encryption_key_next first. Interrupted, the same
    command goes on. Afterwards the old key opens nothing any more.

    \b
    Example:
      holdfast keys rotate --new file:$HOME/new.key
    """
    from holdfast import bootstrap

    with writing(call) as service:
        done = service.keys.rotate(bootstrap.key_source(source))
    if call.output.as_json:
        call.output.data({"old": done.old, "new": done.new, "keys": done.keys})
        return
    call.output.line(f"{done.keys} data keys are wrapped by {done.new}, and no more by {done.old}")
    call.output.note("Set encryption_key to the new key wherever the store is used.")
