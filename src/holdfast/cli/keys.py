"""`holdfast keys`: the commands about the keys of an encrypted store, each loaded when it is called."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.group import Commands

KEYS_COMMANDS: Mapping[str, tuple[str, str]] = {
    "check": ("keys_check", "Check that the configured key opens every data key."),
    "list": ("keys_list", "List the data keys: of which workflow, of which person."),
    "new": ("keys_new", "Make a new key-encryption key in a private file."),
    "rotate": ("keys_rotate", "Wrap all data keys by a new key-encryption key."),
}

command = Commands(
    table=KEYS_COMMANDS,
    name="keys",
    help="""Look after the keys of an encrypted store.

    Each workflow and each person has a data key, kept in the store, wrapped
    by one key-encryption key that is never in it. Say where that is by the
    setting encryption_key: file:PATH, env:NAME or command:PROGRAM.

    \b
    Example:
      holdfast keys check --store .holdfast
    """,
)
