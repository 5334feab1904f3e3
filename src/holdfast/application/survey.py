"""A workflow looked at piece by piece: what is damaged, and what can still be restored."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.application.records import Opened, is_complete
from holdfast.application.restore import open_alone
from holdfast.domain.errors import CheckpointError, CheckpointNotFoundError, ChecksumMismatchError
from holdfast.domain.record import Entry
from holdfast.domain.recovery_plan import Damage, Piece, reachable
from holdfast.ports import Store


@dataclass(frozen=True, slots=True)
class Survey:
    """What is left of a workflow."""

    damage: tuple[Damage, ...]
    #: Kept checkpoints that nothing damaged stands in the way of, newest first.
    reachable: tuple[Entry, ...]


def survey(store: Store, workflow_id: str) -> Survey:
    """Look at every piece of a workflow once; nothing is changed."""
    entries = list(store.entries(workflow_id))
    keyframes = {keyframe.sequence: keyframe for keyframe in store.keyframes(workflow_id)}
    damage: list[Damage] = []
    # No change leads to a complete checkpoint: it is reached by its keyframe alone.
    apart = {entry.sequence for entry in entries if not _has_change(store, workflow_id, entry, damage)}
    whole = [
        one for one in keyframes if not _add(damage, Piece.KEYFRAME, one, _keyframe(store, workflow_id, one))
    ]
    named = {sha256: entry.sequence for entry in entries if not entry.pruned for sha256 in entry.blobs}
    named |= {sha256: one for one in whole for sha256 in keyframes[one].blobs}
    for sha256, sequence in named.items():
        _add(damage, Piece.BLOB, sequence, _blob(store, sha256))
    return Survey(tuple(damage), tuple(reachable(entries, whole, apart)))


def _has_change(store: Store, workflow_id: str, entry: Entry, damage: list[Damage]) -> bool:
    """Tell whether a record leads on from the one before; its damage is noted, unless it was pruned."""
    try:
        [data] = store.records(workflow_id, entry.sequence, entry.sequence)
        return not is_complete(_verified(store, data, workflow_id, entry))
    except (CheckpointError, ValueError) as problem:
        if not (entry.pruned and isinstance(problem, CheckpointNotFoundError | ValueError)):
            _add(damage, Piece.RECORD, entry.sequence, problem)
        return False


def _verified(store: Store, data: bytes, workflow_id: str, entry: Entry) -> Opened:
    opened, _ = open_alone(store, data, workflow_id, entry.sequence)
    if opened.checksum != entry.checksum:
        place = f"{workflow_id}@{entry.sequence}"
        raise ChecksumMismatchError("the record is not the one that was committed", place=place)
    return opened


def _keyframe(store: Store, workflow_id: str, sequence: int) -> CheckpointError | None:
    try:
        store.keyframe(workflow_id, sequence)
    except CheckpointError as problem:
        return problem
    return None


def _blob(store: Store, sha256: str) -> CheckpointError | None:
    try:
        store.blob(sha256)
    except CheckpointError as problem:
        return problem
    return None


def _add(damage: list[Damage], piece: Piece, sequence: int, problem: Exception | None) -> bool:
    """Note a problem, if there is one."""
    if problem is not None:
        message = problem.message if isinstance(problem, CheckpointError) else "it is not there"
        damage.append(Damage(piece, sequence, message))
    return problem is not None


def damaged_sequences(damage: tuple[Damage, ...]) -> list[int]:
    """Answer the checkpoints that own what is damaged, each once, oldest first."""
    return sorted({one.sequence for one in damage})
