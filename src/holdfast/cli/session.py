"""`holdfast session`: stretches of work, and passing them on."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.group import Commands

SESSION_COMMANDS: Mapping[str, tuple[str, str]] = {
    "hand-off": ("session_hand_off", "End a session and leave what its successor needs."),
    "list": ("session_list", "List sessions and how they stand."),
    "resume": ("session_resume", "Take over from a session that ended or crashed."),
    "show": ("session_show", "Show what a session left."),
}

command = Commands(
    table=SESSION_COMMANDS,
    name="session",
    help="""Pass work on from one session to the next.

    A session is one stretch of work: a process, or one context window of a
    model. It ends with a hand-off, a close or a crash, and another takes over.

    \b
    Example:
      holdfast session --store .holdfast list
    """,
)
