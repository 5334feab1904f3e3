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
    if output.as_json or not sys.stdin.isatty():
        asked = what[:1].lower() + what[1:].rstrip("?")
        raise Failure("refused", Exit.REFUSED, f"to {asked} needs --yes")
    if not click.confirm(what, err=True):
        raise Failure("refused", Exit.REFUSED, "nothing was changed")
