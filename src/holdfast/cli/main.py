"""The way in: run a command, and turn whatever goes wrong into one line and an exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from holdfast.cli.exits import Exit, Failure, exit_of, was_interrupted
from holdfast.cli.group import holdfast
from holdfast.cli.output import json_text, safe, wants_color
from holdfast.cli.shared_options import VARIABLES
from holdfast.domain.errors import CheckpointError


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and answer its exit code."""
    argv = list(sys.argv[1:] if args is None else args)
    if args is None:
        # SIGINT stays as it was found. Where it is ignored, a shell did so to keep its background jobs from
        # what is typed to interrupt the foreground, and that holds for a demo as for a migration. SIGTERM is
        # meant for this process.
        signal.signal(signal.SIGTERM, _terminate)
    _prepare_streams()
    if args is None:
        _buffer_streams()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _show_warning
            return _run(argv)
    except BrokenPipeError:
        return _leave_pipe()


def _prepare_streams() -> None:
    """Let nothing fail just because of where our words go."""
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Closed by whoever started us.
            setattr(sys, name, io.StringIO())
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            # A terminal that cannot show a letter is spelled it.
            stream.reconfigure(errors="backslashreplace")


def _buffer_streams() -> None:
    """Put buffers where PYTHONUNBUFFERED left none: what a short write leaves would be lost."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(getattr(stream, "buffer", None), io.FileIO):
            # Whoever holds the old one may go on with it: closing this one closes nothing below.
            file = io.BufferedWriter(io.FileIO(stream.fileno(), "w", closefd=False))
            told = {"encoding": stream.encoding, "errors": stream.errors}
            setattr(sys, name, io.TextIOWrapper(file, **told, line_buffering=True))


def _run(argv: list[str]) -> int:
    if not argv:
        _run(["--help"])
        return Exit.USAGE
    try:
        # The parser empties the list it is given.
        with holdfast.make_context("holdfast", argv.copy()) as context:
            holdfast.invoke(context)
        sys.stdout.flush()
        return Exit.DONE
    except click.exceptions.Exit as leave:
        sys.stdout.flush()
        return leave.exit_code
    except BrokenPipeError:
        raise
    except (KeyboardInterrupt, click.Abort):
        return _report_interrupted(argv)
    except CheckpointError as error:
        return _report(argv, error.code, error.message, exit_of(error.code), error.place, error.hint)
    except Failure as error:
        return _report(argv, error.code, error.message, error.leave, error.place, error.hint)
    except click.ClickException as error:
        # click lists choices below each other, and what we say is one line.
        said = error.format_message().replace("\n\t", " ")
        return _report(argv, "wrong_usage", said, Exit.USAGE, hint=_usage_hint(error))
    except OSError as error:
        # A store translates its own, so this is about our output or our surroundings.
        why = error.strerror or str(error)
        if _leave_output_that_fails():
            return _report(
                argv, "system_refused", f"standard output cannot be written ({why})", Exit.UNEXPECTED
            )
        said = f"the operating system refused ({why})"
        return _report(argv, "system_refused", said, Exit.UNEXPECTED, str(error.filename or ""))
    except Exception as error:
        return _report_interrupted(argv) if was_interrupted(error) else _report_unexpected(argv, error)


def _report(argv: list[str], code: str, message: str, leave: Exit, place: str = "", hint: str = "") -> int:
    """Say what went wrong on standard error, for people or for programs."""
    if _wants_json(argv):
        fields = {"message_type": "exit_error", "code": code, "exit_code": int(leave), "message": message}
        click.echo(json_text({**fields, "place": place, "hint": hint}), err=True)
        return leave
    colored = wants_color(sys.stderr, _color_in(argv), os.environ)
    for label, text in (("error:", message), ("   at:", place), (" hint:", hint)):
        if text:
            shown = click.style(label, fg="red", bold=True) if label == "error:" else label
            click.echo(f"{shown} {safe(text)}", err=True, color=colored)
    return leave


def _color_in(argv: list[str]) -> str:
    """Find the last --color given; the parser may have failed before it came to it."""
    choice = _last_given(argv, "--color") or os.environ.get(VARIABLES["color"], "")
    return choice if choice in ("always", "never") else "auto"


def _wants_json(argv: list[str]) -> bool:
    """Tell whether errors are for programs; the parser may have failed before it came to that."""
    written = ["--output=json" if word == "--json" else word for word in argv]
    choice = _last_given(written, "--output", "-o") or os.environ.get(VARIABLES["output"])
    return choice in ("json", "jsonl")


def _last_given(argv: list[str], *names: str) -> str:
    """Find the last value given to an option, however it is written."""
    choice = ""
    for at, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in names:
            choice = value if equals else "".join(argv[at + 1 : at + 2])
    return choice


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"See `{context.command_path} --help`." if context is not None else ""


def _report_interrupted(argv: list[str]) -> int:
    return _report(argv, "interrupted", "interrupted", Exit.INTERRUPTED)


def _report_unexpected(argv: list[str], error: Exception) -> int:
    """Tell of a mistake of ours without burying the reader in it."""
    if sys.flags.dev_mode:
        raise error
    said = f"unexpected failure ({type(error).__name__}: {_without_secrets(str(error))})"
    hint = "This is a defect of Holdfast. `python -X dev -m holdfast ...` shows where it is."
    return _report(argv, "unexpected", said, Exit.UNEXPECTED, hint=hint)


def _without_secrets(text: str) -> str:
    """Hide secrets in what nobody looked at before it came here."""
    from holdfast.bootstrap import without_any_secret

    return without_any_secret(text)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    click.echo(f"warning: {safe(message)}", err=True)


def _leave_pipe() -> int:
    """End quietly when the reader of our output has gone, as `head` does."""
    _leave_output()
    return Exit.PIPE_CLOSED


def _leave_output_that_fails() -> bool:
    """Let go of output that cannot be written, and of nothing else; tell whether it is such."""
    try:
        sys.stdout.flush()
    except OSError:
        _leave_output()
        return True
    return False


def _leave_output() -> None:
    # Python flushes at exit once more, and would complain again and end with a code of its own.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    """Unwind on SIGTERM, so that temporary folders and children are cleaned up."""
    raise SystemExit(Exit.TERMINATED)
