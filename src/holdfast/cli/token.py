"""`holdfast token`: who may ask the server of a store for what."""

from __future__ import annotations

from holdfast.cli.group import Commands

command = Commands(
    table={
        "create": ("token_create", "Make a token; its text is shown once."),
        "list": ("token_list", "List tokens, and what they are good for."),
        "revoke": ("token_revoke", "Let a token be worth nothing from now on."),
    },
    name="token",
    help="""Make and revoke the tokens of the HTTP API.

    The store keeps their sums, never the tokens.

    \b
    Example:
      holdfast token --store .holdfast list
    """,
)
