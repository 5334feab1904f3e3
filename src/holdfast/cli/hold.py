"""`holdfast hold`: legal holds, which keep what they cover from being removed."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.group import Commands

HOLD_COMMANDS: Mapping[str, tuple[str, str]] = {
    "list": ("hold_list", "List the holds that stand."),
    "place": ("hold_place", "Place a hold."),
    "release": ("hold_release", "Release a hold."),
}

command = Commands(
    table=HOLD_COMMANDS,
    name="hold",
    help="""Keep something from being removed, whoever asks.

    While a hold stands, pruning, deleting and erasing what it covers is
    refused, and the refusal is in the trail.

    \b
    Example:
      holdfast hold --store .holdfast list
    """,
)
