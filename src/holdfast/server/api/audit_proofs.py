"""What proves the trail: proofs of entries, signed heads, verification."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

import msgspec

from holdfast.domain.access import Scope
from holdfast.domain.audit_type import AuditType
from holdfast.domain.base64_text import to_base64
from holdfast.domain.merkle import consistency_proof
from holdfast.domain.note import parse_note
from holdfast.domain.tlogproof import TlogProof
from holdfast.domain.trail import decode_entry
from holdfast.domain.treehead import parse_head
from holdfast.server.api.audit import Index, line_at
from holdfast.server.desk import Desk
from holdfast.server.operation import Answer, Asked, Operation
from holdfast.server.operations import Progress
from holdfast.server.problems import Refusal

_PROOF_TYPE = "text/plain"
#: A larger log is verified as an operation: nobody waits for so long.
_QUICK = 50_000


class Proof(msgspec.Struct):
    """What proves that an entry is in the log. Hashes in base64."""

    index: int
    size: int
    root: str
    hashes: list[str]
    line: str
    note: str
    keys: list[str]


class AuditHead(msgspec.Struct):
    """Where the log stands. `note` is the newest signed head; `keys` are those that the log names."""

    origin: str
    size: int
    anchored: int
    root: str
    note: str
    keys: list[str]
    #: That an older head is a beginning of the newest; hashes in base64.
    consistency: list[str]


class FaultRow(msgspec.Struct):
    """Something that is wrong."""

    kind: str
    problem: str
    place: str
    index: int | None


class VerdictTold(msgspec.Struct):
    """What a verification comes to: 'ok' is said of what was covered, never of what was not."""

    verdict: Literal["ok", "failed", "inconclusive"]
    level: str
    entries: int
    size: int
    root: str
    anchored: int
    unanchored: int
    fault_count: int
    faults: list[FaultRow]
    #: Workflows of the store that no entry tells of, the first of them.
    untold: list[str]


class HeadQuery(msgspec.Struct):
    """Which older size is to be shown as a beginning."""

    start: Index | None = None


class VerifyBody(msgspec.Struct, forbid_unknown_fields=True):
    """How much is verified."""

    payloads: bool = False


def proof(desk: Desk, asked: Asked[None, None]) -> Answer:
    """Prove that an entry is in the log, as JSON or as a file."""
    index, line = line_at(desk, asked.path["index"])
    found = decode_entry(line, None)
    facts: dict[str, int | str] = {"format": "proof", "session": found.session_id, "seq": found.seq}
    desk.note(AuditType.TRAIL_EXPORTED, found.workflow_id, facts)
    proven = desk.service.audit.keeper.proof(found.session_id, found.seq)
    if _PROOF_TYPE in asked.headers.get("accept", ""):
        name = {"Content-Disposition": f'attachment; filename="entry-{index}.tlog-proof"'}
        return Answer(replace(proven, extra=line).encode(), 200, name, _PROOF_TYPE)
    return Answer(_proof(desk, proven, line))


def _proof(desk: Desk, proven: TlogProof, line: bytes) -> Proof:
    head = parse_head(parse_note(proven.checkpoint).text)
    return Proof(
        proven.index,
        head.size,
        to_base64(head.root),
        [to_base64(one) for one in proven.hashes],
        line.decode("utf-8", "backslashreplace"),
        proven.checkpoint.decode("utf-8", "replace"),
        list(map(str, desk.service.audit.keeper.keys())),
    )


def head(desk: Desk, asked: Asked[HeadQuery, None]) -> AuditHead:
    """Tell where the log stands, and that an older head is a beginning of it."""
    keeper = desk.service.audit.keeper
    note, size, start = keeper.checkpoint(), desk.kit.store.integrate(), asked.query.start
    if note is None:
        return AuditHead(keeper.known_origin(), size, 0, "", "", [], [])
    signed = parse_head(parse_note(note).text)
    if start is not None and start > signed.size:
        raise Refusal(422, "invalid_state", f"the newest signed head covers {signed.size} entries")
    hashes = consistency_proof(start, signed.size, keeper.tiles.hashes(signed.size)) if start else ()
    return AuditHead(
        signed.origin,
        size,
        signed.size,
        to_base64(signed.root),
        note.decode("utf-8", "replace"),
        list(map(str, keeper.keys())),
        [to_base64(one) for one in hashes],
    )


def verify(desk: Desk, asked: Asked[None, VerifyBody]) -> Answer | VerdictTold:
    """Verify the whole log here; a large one as an operation."""
    if desk.kit.store.integrate() > _QUICK:
        work = partial(_verdict, desk, asked.body)
        return desk.operations.start("audit.verify", work, asked, scope=Scope.AUDIT_READ, unit="entries")
    return _verdict(desk, asked.body, None)


def _verdict(desk: Desk, body: VerifyBody, progress: Progress | None) -> VerdictTold:
    def told(done: int, total: int) -> None:
        if progress is not None:
            progress.step(done, total)

    report = desk.service.audit.verify(payloads=body.payloads, on_progress=told)
    anchored = max(report.signed_size, report.pinned_size, report.witnessed_size)
    faults = [FaultRow(str(one.kind), one.problem, one.place, one.index) for one in report.faults[:100]]
    return VerdictTold(
        report.verdict().value,
        report.level.label,
        report.entries,
        report.head.size,
        report.head.root.hex(),
        anchored,
        report.tail,
        report.fault_count,
        faults,
        list(report.untold[:100]),
    )


OPERATIONS = (
    Operation(
        "proveAuditEntry",
        "GET",
        "/audit/entries/{index}/proof",
        Scope.AUDIT_READ,
        "What proves that an entry is in the log.",
        proof,
        result=Proof,
        also=(_PROOF_TYPE,),
        tag="audit",
        problems={404: "There is no such entry, or no signed head covers it.", 409: "The log is damaged."},
    ),
    Operation(
        "getAuditHead",
        "GET",
        "/audit/head",
        Scope.AUDIT_READ,
        "The newest signed head.",
        head,
        query=HeadQuery,
        result=AuditHead,
        tag="audit",
        problems={422: "No signed head is as large.", 409: "The log is damaged."},
    ),
    Operation(
        "verifyAudit",
        "POST",
        "/audit/verify",
        Scope.AUDIT_READ,
        "Verify the whole log.",
        verify,
        body=VerifyBody,
        result=VerdictTold,
        tag="audit",
        problems={202: "The log is large: it is verified as an operation."},
    ),
)
