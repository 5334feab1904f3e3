"""Small logs to verify and to tamper with, and the published vectors."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.adapters.crypto.signing import SigningKey, verify
from holdfast.domain.audit_entry import AuditEntry, TrailHead
from holdfast.domain.audit_type import AuditType
from holdfast.domain.log_check import LogReport, LogSource, Trust, verify_log
from holdfast.domain.merkle import leaf_hash
from holdfast.domain.note import COSIGNATURE, Note, sign_text
from holdfast.domain.payload import commitment, encode_payload
from holdfast.domain.tiles import TreeEdge, changed_bundles, pack_bundle
from holdfast.domain.trail import encode_entry
from holdfast.domain.treehead import TreeHead

VECTORS = Path(__file__).parent / "vectors"
ORIGIN = "example.com/audit"
LOG_KEY = SigningKey.from_seed(ORIGIN, bytes(range(32)))
WITNESS_KEY = SigningKey.from_seed("witness.example/w1", bytes(range(1, 33)), COSIGNATURE)
NOW = datetime(2026, 1, 11, 14, 0, tzinfo=UTC)
WITNESSED_AT = 1_768_140_000
SALT = bytes(range(32))

KEY_ONLY = Trust(verify, (LOG_KEY.key,))
EVERYTHING = Trust(verify, (LOG_KEY.key,), witness_keys=(WITNESS_KEY.key,))


def vectors(name: str) -> Any:
    return json.loads((VECTORS / name).read_text(encoding="utf-8"))


def signed_head(size: int, root: bytes, *, origin: str = ORIGIN, witnessed: bool = True) -> bytes:
    """Make a head that the log's key signed, and the witness's if wished."""
    text = TreeHead(origin, size, root).text()
    signatures = [sign_text(text, LOG_KEY.key, LOG_KEY.sign)]
    if witnessed:
        signatures.append(sign_text(text, WITNESS_KEY.key, WITNESS_KEY.sign, timestamp=WITNESSED_AT))
    return Note(text, tuple(signatures)).encode()


@dataclass(frozen=True)
class Log:
    """A log as plain values, as a store or an export would hold it."""

    lines: list[bytes]
    waiting: list[bytes] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    tiles: dict[str, bytes] = field(default_factory=dict)
    payloads: dict[tuple[str, int], bytes] = field(default_factory=dict)

    def check(self, trust: Trust = EVERYTHING) -> LogReport:
        """Verify everything there is."""
        return verify_log(
            LogSource(
                self.lines,
                self.waiting,
                self.heads,
                read_tile=lambda tile: self.tiles.get(tile.path),
                read_payload=lambda session_id, seq: self.payloads.get((session_id, seq)),
            ),
            trust,
        )

    def with_line(self, index: int, line: bytes) -> Log:
        return replace(self, lines=[*self.lines[:index], line, *self.lines[index + 1 :]])

    def pin(self, number: int) -> TreeHead:
        """Give one of the heads as somebody would have remembered it."""
        origin, size, root = self.heads[number].decode().split("\n")[:3]
        return TreeHead(origin, int(size), base64.b64decode(root))


def entry(head: TrailHead, number: int, kind: str, payload: bytes = b"") -> AuditEntry:
    return AuditEntry(
        id=f"AE-{number:03d}",
        timestamp=NOW + timedelta(seconds=number),
        type=kind,
        session_id=head.session_id,
        workflow_id="WF-1",
        agent="planner",
        actor="svc-7",
        correlation_id="c-1",
        facts={"cp_seq": number} if kind == AuditType.CHECKPOINT_CREATED else {},
        payload=commitment(payload) if payload else "",
    )


def kind_of(head: TrailHead, number: int, closes: Iterable[int]) -> str:
    if head.seq == 0 or head.closed:
        return AuditType.SESSION_STARTED
    if number in closes:
        return AuditType.SESSION_CLOSED
    return AuditType.AGENT_DECISION if number % 3 else AuditType.CHECKPOINT_CREATED


def make_log(
    size: int, heads: Sequence[int], *, sessions: int = 2, waiting: int = 0, closes: Iterable[int] = ()
) -> Log:
    """Make a log whose sessions take turns, with signed heads at given sizes and tiles for those."""
    trails = {f"s-{at}": TrailHead(f"s-{at}") for at in range(sessions)}
    log = Log([])
    edge = TreeEdge()
    for number in range(size + waiting):
        name = f"s-{number % sessions}"
        kind = kind_of(trails[name], number, closes)
        payload = b""
        if kind == AuditType.AGENT_DECISION:
            payload = encode_payload({"decision": "approve", "number": number}, SALT)
            log.payloads[name, trails[name].seq + 1] = payload
        record = encode_entry(entry(trails[name], number, kind, payload), trails[name])
        trails[name] = record.head
        (log.lines if number < size else log.waiting).append(record.data)
    for grown in sorted({*heads, size}):
        leaves = [leaf_hash(line) for line in log.lines[edge.size : grown]]
        log.tiles.update((tile.path, data) for tile, data in edge.append(leaves))
        if grown in heads:
            log.heads.append(signed_head(grown, edge.root()))
    return log


def write_export(log: Log, folder: Path) -> None:
    """Lay a log out as C2SP tlog-tiles describes it: tiles, bundles of entries, the newest head."""
    size = log.pin(-1).size
    files = dict(log.tiles)
    for bundle in changed_bundles(0, size):
        first = bundle.index * 256
        files[bundle.path] = pack_bundle(log.lines[first : first + bundle.width])
    files["checkpoint"] = log.heads[-1]
    files["log.vkey"] = f"{LOG_KEY.key}\n".encode()
    files["witness.vkey"] = f"{WITNESS_KEY.key}\n".encode()
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
