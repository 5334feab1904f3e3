"""`holdfast keys check`: whether the configured key opens the store."""

from __future__ import annotations

import click

from holdfast.cli.exits import Exit
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading
from holdfast.cli.output import counted, safe


@click.command("check", cls=StoreCommand)
def command(call: Call) -> None:
    """Check that the configured key opens every data key.

    Ends with 12 if it is not the key of this store, with 20 if a data key is
    damaged.

    \b
    Example:
      holdfast keys check --store .holdfast
    """
    from holdfast.application.key_care import Keys

    with reading(call) as kit:
        keys = Keys(kit)
        keyring, problems = keys.keyring, keys.check()
        count = sum(1 for _ in keyring.key_ids())
        url = kit.store.url
    if call.output.as_json:
        call.output.data({"store": url, "keyring": keyring.id, "keys": count, "problems": problems})
    else:
        for problem in problems:
            call.output.line(f"{call.output.paint('damaged', 'bad')}  {safe(problem)}")
        if not problems:
            call.output.line(
                f"{call.output.paint('valid', 'good')}  {counted(count, 'data key')} can be opened"
            )
    if problems:
        raise click.exceptions.Exit(Exit.CORRUPT)
