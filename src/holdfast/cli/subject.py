"""`holdfast subject`: who workflows are about, and giving them everything about them."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.group import Commands

SUBJECT_COMMANDS: Mapping[str, tuple[str, str]] = {
    "declare": ("subject_declare", "Say that a workflow is about a person."),
    "export": ("subject_export", "Write everything about a person into a folder."),
}

command = Commands(
    table=SUBJECT_COMMANDS,
    name="subject",
    help="""Say whom a workflow is about, and give people theirs.

    The trail names people by a pseudonym; their names are where they can be
    erased.

    \b
    Example:
      holdfast subject --store .holdfast declare WF-2026-001 ann@example.com
    """,
)
