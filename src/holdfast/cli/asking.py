"""Asking before something goes for good."""

from __future__ import annotations

import sys

import click

from holdfast.cli.exits import Exit, Failure
from holdfast.cli.output import Output


def confirm(output: Output, what: str, *, yes: bool) -> None:
    """Ask a person at a terminal whether to go on; anyone else has to say --yes.

    Args:
        what: what happens, as the end of a question: `Erase WF-1 for good?`
    """
    if yes:
        return
    if not is_answered(output):
        asked = what[:1].lower() + what[1:].rstrip("?")
        raise Failure(
            "refused", Exit.REFUSED, f"to {asked} needs --yes", hint="See with --dry-run what would happen."
        )
    if not click.confirm(what, err=True):
        raise Failure("refused", Exit.REFUSED, "nothing was changed")


def is_answered(output: Output) -> bool:
    """Tell whether there is a person who can be asked."""
    return not (output.as_json or output.no_input) and sys.stdin.isatty()
