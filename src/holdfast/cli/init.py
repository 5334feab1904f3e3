"""`holdfast init`: make a store."""

from __future__ import annotations

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.opening import reading, writing
from holdfast.cli.output import safe
from holdfast.domain.errors import StoreNotFoundError


@click.command("init", cls=StoreCommand)
def command(call: Call) -> None:
    """Make a new, empty store.

    A store that is there already is left as it is.

    \b
    Example:
      holdfast init --store .holdfast
    """
    try:
        with reading(call) as kit:
            url, created = kit.store.url, False
    except StoreNotFoundError:
        with writing(call, create=True):
            pass
        with reading(call) as kit:
            url, created = kit.store.url, True
    if call.output.as_json:
        call.output.data({"store": url, "created": created})
    elif created:
        call.output.line(f"Made a store at {safe(url)}")
    else:
        call.output.line(f"There is a store already at {safe(url)}")
