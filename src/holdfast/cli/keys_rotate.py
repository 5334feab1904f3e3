"""`holdfast keys rotate`: wrap all data keys by another key-encryption key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading, writing
from holdfast.cli.output import counted

if TYPE_CHECKING:
    from holdfast.ports import KeySource


@click.command("rotate", cls=StoreCommand)
@click.option(
    "--new", "source", required=True, metavar="SOURCE", help="file:PATH, env:NAME or command:PROGRAM."
)
@changes()
def command(call: Call, source: str, change: Change) -> None:
    """Wrap all data keys by a new key-encryption key.

    Nothing else in the store changes, and others may write meanwhile: give
    them the new key as encryption_key_next first. Interrupted, the same
    command goes on. Afterwards the old key opens nothing any more.

    \b
    Example:
      holdfast keys rotate --new file:$HOME/new.key
    """
    from holdfast import bootstrap

    new = bootstrap.key_source(source)
    if change.dry_run:
        _plan(call, new)
        return
    with writing(call, reason=change.reason) as service:
        done = service.keys.rotate(new)
    if call.output.as_json:
        call.output.data({"old": done.old, "new": done.new, "keys": done.keys})
        return
    wrapped = f"{counted(done.keys, 'data key')} {'is' if done.keys == 1 else 'are'} wrapped"
    call.output.line(f"{wrapped} by {done.new}, and no more by {done.old}")
    call.output.note("Set encryption_key to the new key wherever the store is used.")


def _plan(call: Call, new: KeySource) -> None:
    """Fetch both keys, and tell how many data keys would be wrapped anew."""
    from holdfast.application.key_care import Keys

    with reading(call) as kit:
        keyring = Keys(kit).keyring
        keyring.unlock()
        new.fetch()
        count = sum(1 for _ in keyring.key_ids())
    tell_plan(call.output, f"Would wrap {counted(count, 'data key')} by the new key", keys=count)
