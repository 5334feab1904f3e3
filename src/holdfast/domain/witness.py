"""A witness: signs the head of a log only if it grew out of the last one it signed (C2SP tlog-witness).

A witness keeps one head for each log and never goes back. Because it asks for a proof that the new head goes
on from the old one, a log that was cut, rewritten or shown to others differently gets no signature. The
decision is made here. Who calls must write the new head down durably before giving the signature away, and
must let nobody else in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum

from holdfast.domain.base64_text import to_base64
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError
from holdfast.domain.merkle import verify_consistency
from holdfast.domain.note import (
    Note,
    Sign,
    Signature,
    VerifierKey,
    Verify,
    decode_text,
    parse_note,
    sign_text,
    verify_signatures,
)
from holdfast.domain.tlogproof import PROOF_BYTES_MAX, parse_hashes
from holdfast.domain.treehead import TreeHead, parse_head, parse_number

_OLD = "old "


class Status(IntEnum):
    """Why a witness does not sign, in the status codes of HTTP."""

    MALFORMED = 400
    UNSIGNED = 403
    UNKNOWN_LOG = 404
    CONFLICT = 409
    INCONSISTENT = 422


@dataclass(frozen=True, slots=True)
class AddCheckpoint:
    """A request: the size that the witness should have seen last, the proof from there, the signed head."""

    old_size: int
    proof: tuple[bytes, ...]
    checkpoint: bytes

    def encode(self) -> bytes:
        """Write the request's body."""
        lines = [f"{_OLD}{self.old_size}", *map(to_base64, self.proof)]
        return ("\n".join(lines) + "\n\n").encode() + self.checkpoint


@dataclass(frozen=True, slots=True)
class Approval:
    """The witness may sign: the head to write down, then the text to sign."""

    head: TreeHead
    text: str

    def cosign(self, key: VerifierKey, sign: Sign, timestamp: int) -> Signature:
        """Make the witness's signature; its line is the answer to the request."""
        return sign_text(self.text, key, sign, timestamp=timestamp)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The witness must not sign. `seen_size` is what it saw last, for a log that believed something else."""

    status: Status
    reason: str
    seen_size: int | None = None


def parse_add_checkpoint(data: bytes) -> AddCheckpoint:
    """Read the body of a request.

    Raises:
        CheckpointCorruptError: if it is none.
    """
    if len(data) > PROOF_BYTES_MAX:
        raise CheckpointCorruptError(f"a request has {len(data)} bytes, more than {PROOF_BYTES_MAX}")
    start, empty_line, checkpoint = data.partition(b"\n\n")
    lines = decode_text(start, "a request").split("\n")
    if not empty_line or not lines[0].startswith(_OLD):
        raise CheckpointCorruptError("a request does not begin with an old size, or no signed head follows")
    old_size = parse_number(lines.pop(0).removeprefix(_OLD), "the old size of a request", "line 1")
    parse_head(parse_note(checkpoint).text)
    return AddCheckpoint(old_size, parse_hashes(lines, "a request"), checkpoint)


def judge(
    data: bytes,
    keys: Iterable[VerifierKey],
    last_seen: Callable[[str], TreeHead | None],
    verify: Verify,
) -> Approval | Refusal:
    """Decide on a request.

    Args:
        data: its body.
        keys: those of the logs the witness knows; the name of a key is the origin of its log.
        last_seen: gives the last head of a log that was signed here; None if there was none.
        verify: checks an Ed25519 signature.
    """
    try:
        request = parse_add_checkpoint(data)
    except CheckpointError as fault:
        return Refusal(Status.MALFORMED, str(fault))
    note = parse_note(request.checkpoint)
    head = parse_head(note.text)
    log_keys = [key for key in keys if key.name == head.origin]
    if not log_keys:
        return Refusal(Status.UNKNOWN_LOG, f"{head.origin} is not a log that is known here")
    if not _is_signed(note, log_keys, verify):
        return Refusal(Status.UNSIGNED, f"the head is not signed by a known key of {head.origin}")
    return _compare(request, head, last_seen(head.origin)) or Approval(head, note.text)


def _is_signed(note: Note, keys: list[VerifierKey], verify: Verify) -> bool:
    try:
        return bool(verify_signatures(note, keys, verify))
    except CheckpointError:
        return False


def _compare(request: AddCheckpoint, head: TreeHead, seen: TreeHead | None) -> Refusal | None:
    """Find what speaks against signing."""
    size, root = (seen.size, seen.root) if seen else (0, b"")
    if request.old_size > head.size:
        return Refusal(Status.MALFORMED, "the old size is above that of the head")
    if request.old_size != size:
        return Refusal(Status.CONFLICT, f"the last head that was signed here has the size {size}", size)
    if size == head.size and size and root != head.root:
        return Refusal(Status.CONFLICT, f"another head of size {size} was signed here before", size)
    if size == 0:
        # There is nothing to be consistent with, and nothing else may be claimed.
        has_proof = bool(request.proof)
        return Refusal(Status.INCONSISTENT, "a first head needs no proof") if has_proof else None
    try:
        verify_consistency(size, root, head.size, head.root, request.proof)
    except CheckpointError as fault:
        return Refusal(Status.INCONSISTENT, str(fault))
    return None
