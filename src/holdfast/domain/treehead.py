"""Tree heads: how large a log is and what its root is, as a text to be signed (C2SP tlog-checkpoint)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.domain.base64_text import from_base64, to_base64
from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError, InvalidStateError
from holdfast.domain.merkle import HASH_BYTES, SIZE_MAX, HashReader, consistency_proof, verify_consistency
from holdfast.domain.note import Note, Sign, Verified, VerifierKey, Verify, open_note, sign_text

_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_LINES = 3


@dataclass(frozen=True, slots=True)
class TreeHead:
    """One state of one log. `origin` names the log, `root` is the hash over its first `size` entries."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """Write the head as the text of a note: three lines and no extension lines.

        Raises:
            InvalidStateError: if it cannot be the head of a log.
        """
        if not self.origin or not self.origin.isprintable():
            raise InvalidStateError("a log's origin is one line of printable text", place=ascii(self.origin))
        if not 0 <= self.size <= SIZE_MAX or len(self.root) != HASH_BYTES:
            raise InvalidStateError(f"a tree cannot have {self.size} leaves and such a root")
        return f"{self.origin}\n{self.size}\n{to_base64(self.root)}\n"


def parse_head(text: str) -> TreeHead:
    """Read the text of a note as a tree head.

    Raises:
        CheckpointCorruptError: if it is none, or has lines after the root: those Holdfast never writes, and
            nobody could say what they promise.
    """
    lines = text.split("\n")
    if len(lines) != _LINES + 1 or lines[-1]:
        raise CheckpointCorruptError("a tree head does not have three lines", place=ascii(text)[:80])
    origin, size, encoded, _ = lines
    if not origin or not origin.isprintable():
        raise CheckpointCorruptError("a tree head does not name its log", place="line 1")
    root = from_base64(encoded, "the root of a tree head", "line 3")
    if len(root) != HASH_BYTES:
        raise CheckpointCorruptError("the root of a tree head is no SHA-256 hash", place="line 3")
    return TreeHead(origin, parse_number(size, "the size of a tree head", "line 2"), root)


def sign_head(head: TreeHead, key: VerifierKey, sign: Sign) -> bytes:
    """Sign a head with a key of its log; `check_growth` comes before.

    Raises:
        InvalidStateError: if the key is not named as the log is.
    """
    if key.name != head.origin:
        raise InvalidStateError(f"the key of {key.name} does not sign for {head.origin}")
    text = head.text()
    return Note(text, (sign_text(text, key, sign),)).encode()


def open_head(
    data: bytes, keys: Iterable[VerifierKey], verify: Verify
) -> tuple[TreeHead, tuple[Verified, ...]]:
    """Read a head that a known key of its log must have signed; answer all known keys that did.

    Raises:
        CheckpointCorruptError: if it is none.
        ChecksumMismatchError: if a known key did not sign it, or none of its log did.
    """
    note, verified = open_note(data, keys, verify)
    head = parse_head(note.text)
    if all(signer.key.name != head.origin for signer in verified):
        raise ChecksumMismatchError(f"no known key of {head.origin} signed the head")
    return head, verified


def check_growth(old: TreeHead, new: TreeHead, read: HashReader) -> None:
    """Check that a log still begins with what was signed before: a log must never sign two histories.

    Args:
        old: the last head that was signed.
        new: the head that is to be signed.
        read: gives hashes of the tree as it is stored now.

    Raises:
        ChecksumMismatchError: if the new head did not grow out of the old one.
    """
    if old.origin != new.origin or old.size > new.size:
        raise ChecksumMismatchError(f"a log of {new.size} entries did not grow out of one with {old.size}")
    if old.size:
        proof = consistency_proof(old.size, new.size, read)
        verify_consistency(old.size, old.root, new.size, new.root, proof)


def parse_number(text: str, what: str, place: str = "") -> int:
    """Read a number in its one decimal spelling.

    Raises:
        CheckpointCorruptError: if it is not that, or more than a tree can count.
    """
    if not _NUMBER.fullmatch(text) or int(text) > SIZE_MAX:
        raise CheckpointCorruptError(f"{what} is not a number", place=place or ascii(text)[:40])
    return int(text)
