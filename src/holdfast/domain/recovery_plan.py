"""What a recovery would do, and what it found damaged: told before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from holdfast.domain.ids import CheckpointID
from holdfast.domain.record import Entry, Lease
from holdfast.domain.recovery import RecoveryMode
from holdfast.domain.replay import SkippedEvent


class Piece(StrEnum):
    """What a checkpoint is restored from."""

    RECORD = "record"
    KEYFRAME = "keyframe"
    BLOB = "blob"


@dataclass(frozen=True, slots=True)
class Damage:
    """A piece of a workflow that is not what was committed."""

    piece: Piece
    #: The checkpoint it belongs to.
    sequence: int
    problem: str

    def __str__(self) -> str:
        return f"the {self.piece} of checkpoint {self.sequence}: {self.problem}"


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """What would happen, and why.

    Attributes:
        checkpoint: what would be restored; None where nothing verifies.
        passed_over: sequences of newer checkpoints that could not be used.
        damage: what would be set aside as evidence.
        events: how many events follow the checkpoint.
        replayed: how many of them would change the state.
        skipped: those that would not fit it.
        lease: who has the workflow at this moment.
        handler: what would resume the work, where the checkpoint names one.
        is_handler_known: whether the program at hand has it.
        refusals: why nothing would be done.
        warnings: what would be different from an undisturbed run.
        has_nothing_valid: whether it would be refused because no checkpoint verifies, and for nothing else.
    """

    workflow_id: str
    mode: RecoveryMode
    checkpoint: CheckpointID | None = None
    passed_over: tuple[int, ...] = ()
    damage: tuple[Damage, ...] = ()
    events: int = 0
    replayed: int = 0
    skipped: tuple[SkippedEvent, ...] = ()
    lease: Lease | None = None
    handler: str | None = None
    is_handler_known: bool = False
    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    has_nothing_valid: bool = False


def reachable(entries: Sequence[Entry], keyframes: Sequence[int], broken: set[int]) -> Iterator[Entry]:
    """Answer the kept checkpoints, newest first, that whole keyframes and unbroken records lead to.

    Args:
        entries: all checkpoints by sequence, tombstones included.
        keyframes: sequences of those keyframes that are whole.
        broken: sequences whose record is damaged or gone, or brings no change.
    """
    starts, found, is_open = set(keyframes), list[Entry](), False
    for entry in entries:
        is_open = entry.sequence in starts or (is_open and entry.sequence not in broken)
        if is_open and not entry.pruned:
            found.append(entry)
    return reversed(found)
