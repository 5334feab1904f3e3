"""What a person knows from elsewhere, as written on a command line: keys, remembered heads, a level."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from holdfast.cli.audit_files import read_text

if TYPE_CHECKING:
    from holdfast.domain.log_check import Level
    from holdfast.domain.note import VerifierKey
    from holdfast.domain.treehead import TreeHead

LEVELS = ("chain", "signed", "pinned", "witness")


@dataclass(frozen=True, slots=True)
class Known:
    """What whoever verifies has given: keys of the log, pins as written, keys of witnesses, a quorum."""

    keys: tuple[VerifierKey, ...] = ()
    pins: tuple[str, ...] = ()
    witnesses: tuple[VerifierKey, ...] = ()
    quorum: int = 1

    @property
    def level(self) -> Level:
        """The level that these are for: who gives a key wants to see a signature."""
        words = ("witness", self.witnesses), ("pinned", self.pins), ("signed", self.keys)
        return level_of(next((word for word, given in words if given), "chain"))

    def read_pins(self, origin: str) -> tuple[TreeHead, ...]:
        """Read the pins; one without a name is of the log that the keys name, else of a given one."""
        name = next((key.name for key in self.keys), origin)
        return tuple(read_pin(pin, name) for pin in self.pins)


def read_keys(given: Iterable[str]) -> tuple[VerifierKey, ...]:
    """Read public keys, each written as it is or in a file with one on each line."""
    from holdfast.domain.errors import CheckpointCorruptError
    from holdfast.domain.note import parse_vkey

    keys: list[VerifierKey] = []
    for text in given:
        try:
            keys += [parse_vkey(line) for line in _lines(text)]
        except CheckpointCorruptError as fault:
            raise click.UsageError(f"{fault.message} ({fault.place})") from None
    return tuple(dict.fromkeys(keys))


def _lines(text: str) -> list[str]:
    """Answer what is in the file of this name; the text itself if it reads like a key."""
    if text.count("+") >= 2 and not os.path.isfile(text):
        return [text]
    lines = [line.strip() for line in read_text(text).splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise click.UsageError(f"there is no public key in {text}")
    return found


def read_pin(given: str, origin: str) -> TreeHead:
    """Read a remembered head: a file that holds one, signed or not, or `SIZE:ROOT` in base64 or hex."""
    from holdfast.domain.errors import CheckpointError
    from holdfast.domain.note import parse_note
    from holdfast.domain.treehead import TreeHead, parse_head, parse_number

    size, colon, root = given.partition(":")
    try:
        if colon and size.isdecimal() and not os.path.isfile(given):
            return TreeHead(origin, parse_number(size, "the size of a pin"), _root(root))
        text = read_text(given)
        return parse_head(parse_note(text.encode()).text if "\n\n" in text else text)
    except CheckpointError as fault:
        raise click.UsageError(f"{given} is no pin: {fault}") from None


def _root(text: str) -> bytes:
    from holdfast.domain.base64_text import from_base64
    from holdfast.domain.errors import CheckpointCorruptError
    from holdfast.domain.merkle import HASH_BYTES

    try:
        root = bytes.fromhex(text)
    except ValueError:
        root = from_base64(text, "the root of a pin")
    if len(root) != HASH_BYTES:
        raise CheckpointCorruptError("its root is no SHA-256 hash")
    return root


def level_of(word: str) -> Level:
    """Answer the level that a word of --require means."""
    from holdfast.domain.log_check import Level

    return Level(LEVELS.index(word) + 1)
