"""What `holdfast recover --exec` runs once a workflow is back: a command that is told which one."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.exits import Exit, Failure
from holdfast.cli.output import json_line

if TYPE_CHECKING:
    from holdfast.cli.group import Call

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):(.*)", re.DOTALL)
#: Of stores that are named by a path.
_PATHS = frozenset({"file", "sqlite", "postgresql+embedded"})


def command_words(text: str) -> list[str]:
    """Part a command into words, as a shell does, and find its program before anything is changed.

    Raises:
        UsageError: it cannot be read, or there is no such program.
    """
    try:
        words = shlex.split(text)
    except ValueError as fault:
        raise click.UsageError(f"--exec cannot be read ({fault})") from None
    if not words:
        raise click.UsageError("--exec is empty")
    if shutil.which(words[0]) is None:
        raise click.UsageError(f"--exec {words[0]}: there is no such program, or it may not be run")
    return words


def run_command(call: Call, words: list[str], fields: Mapping[str, Any]) -> int:
    """Run a command with what was recovered on its standard input, and answer its exit code.

    No word of it comes from a store, and there is no shell but one that was given.

    Raises:
        Failure: it could not be started.
    """
    try:
        done = subprocess.run(
            words,
            input=json_line(dict(fields)).encode() + b"\n",
            # What it prints is talk, as that of an app is.
            stdout=2,
            env={**os.environ, **_told(call, fields)},
            check=False,
        )
    except OSError as fault:
        raise _failed(words, fault.strerror or str(fault)) from None
    return done.returncode


def check_ended_well(words: list[str], exit_code: int) -> None:
    """End as a failed run does where the command failed.

    Raises:
        Failure: it did.
    """
    if exit_code:
        how = f"signal {-exit_code}" if exit_code < 0 else str(exit_code)
        raise _failed(words, f"it ended with {how}")


def _failed(words: list[str], why: str) -> Failure:
    return Failure(
        "exec_failed",
        Exit.RUN_FAILED,
        f"the workflow was recovered, the command of --exec failed ({why})",
        place=words[0],
        hint="The recovery stands. Mend the command, and run it, or this again.",
    )


def _told(call: Call, fields: Mapping[str, Any]) -> dict[str, str]:
    """Answer what the environment of the command says beside ours."""
    from holdfast.config import Config

    return {
        "HOLDFAST_STORE": _anywhere(Config.load({"store": call.store}).store),
        "HOLDFAST_WORKFLOW_ID": str(fields["workflow_id"]),
        "HOLDFAST_CHECKPOINT_ID": str(fields["checkpoint_made"] or fields["checkpoint_used"] or ""),
    }


def _anywhere(store: str) -> str:
    """Name a store so that it is found from any folder, as `holdfast init` does."""
    found = _SCHEME.fullmatch(store)
    scheme, rest = found.groups() if found else ("file", store)
    return f"{scheme}:{os.path.abspath(rest.removeprefix('//'))}" if scheme in _PATHS else store
