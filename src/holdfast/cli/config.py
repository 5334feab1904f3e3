"""`holdfast config`: the commands about the settings, each loaded when it is called."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.group import Commands

CONFIG_COMMANDS: Mapping[str, tuple[str, str]] = {
    "path": ("config_path", "Tell which files settings are read from."),
    "set": ("config_set", "Change one setting in a file, and nothing else."),
    "show": ("config_show", "Show every setting as it holds here."),
}

command = Commands(
    table=CONFIG_COMMANDS,
    name="config",
    help="""Show the settings, and where each comes from.

    A flag wins over HOLDFAST_*, that over holdfast.toml in the working
    folder, that over your own file, that over the default.

    \b
    Example:
      holdfast config show --json
    """,
)
