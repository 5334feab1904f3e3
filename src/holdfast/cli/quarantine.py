"""`holdfast quarantine`: what was found damaged and set aside."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.group import Commands

QUARANTINE_COMMANDS: Mapping[str, tuple[str, str]] = {
    "drop": ("quarantine_drop", "Remove evidence for good."),
    "list": ("quarantine_list", "List what was set aside."),
    "release": ("quarantine_release", "Let a checkpoint be used that verifies again."),
    "show": ("quarantine_show", "Show why something was set aside, and its bytes."),
}

command = Commands(
    table=QUARANTINE_COMMANDS,
    name="quarantine",
    help="""Look after what was found damaged and set aside.

    A damaged checkpoint is kept with its bytes, the reason and their hash, and
    is refused until it verifies again and is released. `holdfast recover` and
    `holdfast validate --quarantine` set aside what they find.

    \b
    Example:
      holdfast quarantine --store .holdfast list
    """,
)
