"""Small files that are named on the command line: heads, keys, proofs, requests, answers."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

import click

from holdfast.cli.exits import Exit, Failure

#: No key, head or proof is longer than that.
FILE_BYTES_MAX = 4_000_000


def read_file(path: str) -> bytes:
    """Read a small file; `-` is standard input."""
    if path == "-":
        return sys.stdin.buffer.read(FILE_BYTES_MAX)
    try:
        with open(path, "rb") as file:
            return file.read(FILE_BYTES_MAX)
    except OSError as fault:
        raise click.UsageError(f"{path} cannot be read ({fault.strerror})") from None


def read_text(path: str) -> str:
    """Read a small text file."""
    try:
        return read_file(path).decode()
    except UnicodeDecodeError:
        raise click.UsageError(f"{path} is not a text file") from None


def write_file(path: str, data: bytes) -> None:
    """Write a file whole or not at all; `-` is standard output."""
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return
    with written_whole(path) as file:
        file.write(data)


@contextmanager
def written_whole(path: str) -> Iterator[BinaryIO]:
    """Write a file for its owner alone; it is there whole and durable, or nothing of it is.

    A device or a pipe is written to as it is: a file in its place would take it away from everybody.
    """
    if _is_stream(path):
        try:
            with open(path, "wb") as stream:
                yield stream
        except OSError as fault:
            raise _not_written(path, fault) from None
        return
    fresh = f"{path}.new"
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as fault:
        raise click.UsageError(f"{path} cannot be written ({fault.strerror})") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except BaseException as fault:
        with suppress(OSError):
            os.unlink(fresh)
        if isinstance(fault, OSError):
            raise _not_written(path, fault) from None
        raise


def _is_stream(path: str) -> bool:
    """Tell whether a path leads to something that is neither a file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _not_written(path: str, fault: OSError) -> Failure:
    return Failure(
        "file_not_written",
        Exit.UNEXPECTED,
        f"the file cannot be written ({fault.strerror})",
        place=path,
        hint="Nothing of it was left behind. Make room, or name another place.",
    )
