"""`holdfast config`: the commands about the settings, each loaded when it is called."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.group import Commands

CONFIG_COMMANDS: Mapping[str, tuple[str, str]] = {
    "show": ("config_show", "Show every setting as it holds here."),
}

command = Commands(
    table=CONFIG_COMMANDS,
    name="config",
    help="""Show the settings, and where each comes from.

    A flag wins over HOLDFAST_*, that over holdfast.toml in the working
    folder, that over the default.

    \b
    Example:
      holdfast config show --json
    """,
)
