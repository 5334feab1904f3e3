"""`holdfast keys list`: the data keys of a store."""

from __future__ import annotations

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading
from holdfast.cli.output import safe


@click.command("list", cls=StoreCommand)
def command(call: Call) -> None:
    """List the data keys: of which workflow, of which person.

    Without the key-encryption key only their ids can be told.

    \b
    Example:
      holdfast keys list --store .holdfast
    """
    from holdfast.application.key_care import Keys

    with reading(call) as kit:
        keys = Keys(kit)
        keyring, entries = keys.keyring, list(keys.listing())
        url = kit.store.url
    if call.output.as_json:
        told = [
            {"id": one.id, "scope": one.scope or None, "wrapped_by": list(one.wrapped_by)} for one in entries
        ]
        call.output.data({"store": url, "keyring": keyring.id, "locked": keyring.is_locked, "keys": told})
        return
    rows = [(one.id, safe(one.scope or "-"), " ".join(one.wrapped_by)) for one in entries]
    call.output.table(("KEY", "SCOPE", "WRAPPED BY"), rows)
    if keyring.is_locked:
        call.output.note("No key is configured: whose they are cannot be told.")
