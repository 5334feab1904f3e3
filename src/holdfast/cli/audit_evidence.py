"""Verifying the evidence for one entry: a `.tlog-proof` file, and nothing else but a key."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.cli.audit_files import read_file
from holdfast.cli.audit_log import fields_of
from holdfast.cli.audit_trust import Known
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call
from holdfast.cli.output import Output, safe
from holdfast.domain.errors import CheckpointCorruptError, CheckpointError

if TYPE_CHECKING:
    from holdfast.domain.audit_entry import AuditEntry
    from holdfast.domain.log_check import Level
    from holdfast.domain.note import Verified, VerifierKey
    from holdfast.domain.tlogproof import TlogProof
    from holdfast.domain.treehead import TreeHead


def verify_proof(call: Call, path: str, entry_file: str | None, known: Known, required: Level) -> Exit:
    """Check that an entry is in a log, by the evidence alone; tell the result and name the exit."""
    from holdfast.domain.log_check import Level
    from holdfast.domain.tlogproof import parse_tlog_proof

    data = read_file(path)
    try:
        proof = parse_tlog_proof(data)
        line = _entry_line(path, entry_file, proof)
        entry, head, signers = _checked(proof, line, known)
        is_pinned = _is_pinned(head, known)
    except CheckpointError as error:
        raise Failure(
            "verification_failed", Exit.NOT_VERIFIED, error.message, place=error.place, hint=error.hint
        ) from None
    # Without a signature or a pin anybody can have made it: the least that is ever required of a proof.
    required = max(required, Level.SIGNED)
    level = _level({signer.key for signer in signers}, known, is_pinned=is_pinned)
    leave = Exit.DONE if level >= required else Exit.INCONCLUSIVE
    told = Told(entry, proof.index, head, [str(signer.key) for signer in signers], level, required)
    _print(call.output, told, leave)
    return leave


@dataclass(frozen=True, slots=True)
class Told:
    """What a proof shows."""

    entry: AuditEntry
    index: int
    head: TreeHead
    signers: list[str]
    level: Level
    required: Level


def _is_pinned(head: TreeHead, known: Known) -> bool:
    """Tell whether the head of a proof is one that was seen before; of its size there can be no other.

    Raises:
        CheckpointCorruptError: another head of that size was seen, or one of another log.
    """
    pins = known.read_pins(head.origin)
    for pin in pins:
        place = f"pinned head of size {pin.size}"
        if pin.origin != head.origin:
            raise CheckpointCorruptError("it is of another log than the proof", place=place)
        if pin.size == head.size and pin != head:
            raise CheckpointCorruptError(
                "the head of the proof, of the same size, is another one", place=place
            )
    return head in pins


def _level(signed_by: set[VerifierKey], known: Known, *, is_pinned: bool) -> Level:
    from holdfast.domain.log_check import Level

    witnesses = {key.public_key for key in signed_by.intersection(known.witnesses)}
    if signed_by.intersection(known.keys) and known.witnesses and len(witnesses) >= known.quorum:
        return Level.WITNESSED
    if is_pinned:
        return Level.PINNED
    return Level.SIGNED if signed_by.intersection(known.keys) else Level.CHAIN


def _entry_line(path: str, entry_file: str | None, proof: TlogProof) -> bytes:
    """Find the entry: as named, else inside the proof, else in the file beside it."""
    beside = f"{path.removesuffix('.tlog-proof')}.entry"
    if entry_file is None and not proof.extra and os.path.isfile(beside):
        entry_file = beside
    line = proof.extra if entry_file is None else read_file(entry_file)
    if not line:
        said = "the proof does not hold its entry"
        raise Failure("wrong_usage", Exit.USAGE, said, place=path, hint="Give the entry with --entry.")
    return line


def _checked(
    proof: TlogProof, line: bytes, known: Known
) -> tuple[AuditEntry, TreeHead, tuple[Verified, ...]]:
    """Check the way from the entry to the root, and every signature of a key that is known."""
    from holdfast import bootstrap
    from holdfast.domain.merkle import leaf_hash, verify_inclusion
    from holdfast.domain.note import parse_note
    from holdfast.domain.tlogproof import verify_tlog_proof
    from holdfast.domain.trail import decode_entry
    from holdfast.domain.treehead import parse_head

    head = parse_head(parse_note(proof.checkpoint).text)
    signers: tuple[Verified, ...] = ()
    verify_inclusion(leaf_hash(line), proof.index, head.size, proof.hashes, head.root)
    if known.keys:
        keys = [*known.keys, *known.witnesses]
        head, signers = verify_tlog_proof(proof, line, keys, bootstrap.signature_check())
    return decode_entry(line, None), head, signers


def _print(output: Output, told: Told, leave: Exit) -> None:
    verdict = "ok" if leave is Exit.DONE else "inconclusive"
    entry, index, head = told.entry, told.index, told.head
    if output.as_json:
        fields: dict[str, Any] = {"verdict": verdict, "index": index, "origin": head.origin}
        fields |= {"size": head.size, "root": head.root.hex(), "signed_by": told.signers}
        fields |= {"level": told.level.label, "required": told.required.label}
        output.data({**fields, "entry": fields_of(entry)})
        return
    output.line(f"entry        {safe(entry.session_id)}#{entry.seq}, {safe(entry.type)} {entry.timestamp}")
    output.line(f"leaf         {index} of {head.size} of {safe(head.origin)}, root {head.root.hex()}")
    for signer in told.signers:
        output.line(f"signed by    {safe(signer)}")
    output.line(f"level        {told.level.label}, required: {told.required.label}")
    good = leave is Exit.DONE
    said = "" if good else f": it fits its head, and {_missing(told)}"
    output.line(f"verdict      {output.paint(verdict, 'good' if good else 'warn')}{said}")


def _missing(told: Told) -> str:
    """Say what keeps a proof from the level that is required of it."""
    if not told.signers:
        return "no key that is known signed that; give --key"
    return f"{told.required.label} was not reached; a pin of its very size, or a signature, is missing"
