"""Stores with a trail, their keepers and logs, for the tests of what is built on the trail."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from holdfast.adapters.crypto.signing import SigningKey, verify
from holdfast.application.audit.audit_log import AuditLog
from holdfast.application.audit.log_keeping import LogKeeper
from holdfast.application.commit_queue import CommitQueue
from holdfast.application.kit import Kit
from holdfast.application.trailing import Trail
from holdfast.domain.errors import CheckpointError
from holdfast.domain.note import COSIGNATURE, Note, parse_note, sign_text
from holdfast.ports import Signer, Store
from holdfast.testing import FixedClock
from tests.application.services import make_kit

SEED = bytes(range(32))
WITNESS = SigningKey.from_seed("witness.example/w1", bytes(range(1, 33)), COSIGNATURE)
WITNESSED_AT = 1_768_140_000


class OneKey:
    """Signs for every log with a key of the same seed."""

    def __init__(self, *, is_there: bool = True, seed: bytes = SEED) -> None:
        self.is_there = is_there
        self.seed = seed
        self.heads: dict[str, bytes] = {}

    def remembered(self, origin: str) -> bytes | None:
        return self.heads.get(origin)

    def remember(self, origin: str, head: bytes) -> None:
        self.heads[origin] = head

    def signer(self, origin: str, *, create: bool = False) -> Signer | None:
        self.is_there = self.is_there or create
        return SigningKey.from_seed(origin, self.seed) if self.is_there else None

    def verify(self, public_key: bytes, message: bytes, signature: bytes) -> bool:
        return verify(public_key, message, signature)


@dataclass(frozen=True)
class Desk:
    """Everything that works on one log."""

    kit: Kit
    trail: Trail
    keeper: LogKeeper
    log: AuditLog

    @property
    def store(self) -> Store:
        return self.kit.store

    def tell(self, count: int, session_id: str = "s-1", *, first: int = 0) -> None:
        """Write decisions, each with a payload."""
        for number in range(first, first + count):
            self.trail.record(
                *self.trail.told(
                    "AGENT_DECISION",
                    session_id=session_id,
                    workflow_id=f"W{number % 2}",
                    agent="planner",
                    facts={"n": number},
                    payload={"decision": "approve", "number": number},
                )
            )


def make_desk(store: Store | None = None, *, key: bool = True, **settings: Any) -> Desk:
    """Open a log over a store, one in memory by default."""
    kit = make_kit(store, clock=FixedClock(step=timedelta(seconds=1)), **{"session": "here", **settings})
    kit = replace(kit, signing=OneKey(is_there=key), redactor=None, actor="ann")
    trail = Trail(kit, CommitQueue(kit.store.commit))
    keeper = LogKeeper(kit, trail)
    return Desk(kit, trail, keeper, AuditLog(kit, trail, keeper))


def replace_signing(desk: Desk, signing: OneKey | None) -> Desk:
    """Let others sign."""
    kit = replace(desk.kit, signing=signing)
    keeper = LogKeeper(kit, desk.trail)
    return Desk(kit, desk.trail, keeper, AuditLog(kit, desk.trail, keeper))


def anchored(desk: Desk) -> bytes:
    """Sign a head, which there must be."""
    head = desk.keeper.anchor(create_key=True)
    assert head is not None
    return head


def cosigned(head: bytes) -> bytes:
    """Let the witness sign a head."""
    note = parse_note(head)
    line = sign_text(note.text, WITNESS.key, WITNESS.sign, timestamp=WITNESSED_AT)
    return Note(note.text, (*note.signatures, line)).encode()


def tree_of(folder: Path) -> dict[str, bytes]:
    """Read every file below a folder."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def outcomes(results: Iterable[Exception | None]) -> None:
    """Raise what a commit was refused with."""
    for result in results:
        if isinstance(result, CheckpointError):
            raise result
