"""`holdfast version`: what is installed."""

from __future__ import annotations

import click

from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.machine import versions


@click.command("version", cls=StoreCommand)
def command(call: Call) -> None:
    """Tell the versions of Holdfast and what it uses.

    \b
    Example:
      holdfast version --json
    """
    found = versions()
    if call.output.as_json:
        call.output.data(found)
    else:
        label_width = max(map(len, found))
        call.output.lines(f"{name:<{label_width}}  {version}" for name, version in found.items())
