"""Small files that are named on the command line: heads, keys, proofs, requests, answers."""

from __future__ import annotations

import os
import sys

import click

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
    fresh = f"{path}.new"
    try:
        with open(fresh, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
    except OSError as fault:
        raise click.UsageError(f"{path} cannot be written ({fault.strerror})") from None
