"""`holdfast keys new`: make a key-encryption key."""

from __future__ import annotations

import os

import click

from holdfast.cli.changing import Change, changes, tell_plan
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.output import safe


@click.command("new", cls=StoreCommand)
@click.option("--out", required=True, metavar="FILE", help="Where to write it. Must not exist yet.")
@changes()
def command(call: Call, out: str, change: Change) -> None:
    """Make a new key-encryption key in a private file.

    The file holds 32 random bytes in base64, and only you may read it. Keep
    a copy in a safe place: without the key nothing in the store can be read.

    \b
    Example:
      holdfast keys new --out ~/holdfast.key
    """
    from holdfast import bootstrap

    if change.dry_run:
        if os.path.lexists(out):
            raise click.UsageError(f"{out} is there already, and a key is never written over")
        tell_plan(call.output, f"Would make a key in {safe(out)}", file=out)
        return
    bootstrap.new_key_file(out)
    if call.output.as_json:
        call.output.data({"file": out, "encryption_key": f"file:{out}"})
    else:
        call.output.line(f"encryption_key=file:{safe(out)}")
        call.output.note("Keep a copy of it in a safe place. What it protects is lost with it.")
