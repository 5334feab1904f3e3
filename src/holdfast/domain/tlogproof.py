"""Evidence for one entry in one file: a `.tlog-proof` (C2SP tlog-proof).

It holds the entry's index, the proof that it is in the tree, and the signed head of that tree. Whoever has
the entry's bytes and the log's public key needs nothing else, and no network.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.domain.base64_text import from_base64, to_base64
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.merkle import HASH_BYTES, leaf_hash, verify_inclusion
from holdfast.domain.note import Verified, VerifierKey, Verify, decode_text, parse_note
from holdfast.domain.treehead import TreeHead, open_head, parse_head, parse_number

#: A tree of 2**63 leaves has no longer proof.
PROOF_HASHES_MAX = 63
PROOF_BYTES_MAX = 2_000_000

_HEADER = "c2sp.org/tlog-proof@v1"
_EXTRA = "extra "
_INDEX = "index "


@dataclass(frozen=True, slots=True)
class TlogProof:
    """The evidence. `checkpoint` is the signed head as it was given out; `extra` is trusted by nobody."""

    index: int
    hashes: tuple[bytes, ...]
    checkpoint: bytes
    extra: bytes = b""

    def encode(self) -> bytes:
        """Write the file."""
        lines = [_HEADER]
        if self.extra:
            lines.append(_EXTRA + to_base64(self.extra))
        lines += [f"{_INDEX}{self.index}", *map(to_base64, self.hashes)]
        return ("\n".join(lines) + "\n\n").encode() + self.checkpoint


def parse_tlog_proof(data: bytes) -> TlogProof:
    """Read the file; its claims are checked by `verify_tlog_proof`.

    Raises:
        CheckpointCorruptError: if it is none.
    """
    if len(data) > PROOF_BYTES_MAX:
        raise CheckpointCorruptError(f"a proof has {len(data)} bytes, more than {PROOF_BYTES_MAX}")
    start, empty_line, checkpoint = data.partition(b"\n\n")
    lines = decode_text(start, "a proof").split("\n")
    if lines.pop(0) != _HEADER:
        raise CheckpointCorruptError(f"a proof does not begin with {_HEADER}", place="line 1")
    extra = b""
    if lines and lines[0].startswith(_EXTRA):
        extra = from_base64(lines.pop(0).removeprefix(_EXTRA), "the extra data of a proof", "line 2")
    if not empty_line or not lines or not lines[0].startswith(_INDEX):
        raise CheckpointCorruptError("a proof does not tell an index, or no signed head follows")
    index = parse_number(lines.pop(0).removeprefix(_INDEX), "the index of a proof")
    # Read here so that every fault of the file is told at once.
    parse_head(parse_note(checkpoint).text)
    return TlogProof(index, parse_hashes(lines, "a proof"), checkpoint, extra)


def parse_hashes(lines: Sequence[str], what: str) -> tuple[bytes, ...]:
    """Read hashes, one on each line.

    Raises:
        CheckpointCorruptError: if they are none, or too many.
    """
    if len(lines) > PROOF_HASHES_MAX:
        raise CheckpointCorruptError(f"{what} has {len(lines)} hashes, more than {PROOF_HASHES_MAX}")
    hashes = tuple(from_base64(line, f"hash {at} of {what}") for at, line in enumerate(lines, 1))
    if any(len(found) != HASH_BYTES for found in hashes):
        raise CheckpointCorruptError(f"{what} holds something that is no SHA-256 hash")
    return hashes


def verify_tlog_proof(
    proof: TlogProof, entry: bytes, keys: Iterable[VerifierKey], verify: Verify
) -> tuple[TreeHead, tuple[Verified, ...]]:
    """Check that an entry, given by its bytes, is in the log; answer the head that says so and who signed it.

    Args:
        proof: the evidence.
        entry: the exact bytes of the entry, its newline included.
        keys: those of the log, which must have signed, and of witnesses, which may.
        verify: checks an Ed25519 signature.

    Raises:
        CheckpointCorruptError: if the evidence is malformed.
        ChecksumMismatchError: if it proves something else, or the log's key did not sign.
    """
    head, verified = open_head(proof.checkpoint, keys, verify)
    verify_inclusion(leaf_hash(entry), proof.index, head.size, proof.hashes, head.root)
    return head, verified
