"""Code of a program at work inside a command: it may print and leave, and spoils no output by it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

from holdfast.cli.exits import Exit, Failure


@contextmanager
def program_at_work() -> Iterator[None]:
    """Send what a program prints to standard error, and tell if it ends the process by itself."""
    try:
        # Standard output is for data: one JSON document, or what a pipe waits for.
        with redirect_stdout(sys.stderr):
            yield
    except SystemExit as leave:
        # A signal that is to end us is none of the program's doing.
        if leave.code is Exit.TERMINATED:
            raise
        raise Failure(
            "program_ended",
            Exit.UNEXPECTED,
            f"the program ended itself in the middle of it (SystemExit: {leave.code})",
            hint="Handlers, reducers and migrations have to return or to raise. Mend it, run this again.",
        ) from None
