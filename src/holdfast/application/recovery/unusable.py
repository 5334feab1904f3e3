"""Why a checkpoint cannot be restored: the damaged pieces that stand in the way to it."""

from __future__ import annotations

from holdfast.application.survey import Survey, survey
from holdfast.domain import plainjson
from holdfast.domain.errors import CheckpointError
from holdfast.domain.recovery_plan import Damage, Piece
from holdfast.ports import Store


def why_unusable(store: Store, workflow_id: str, sequence: int) -> tuple[Damage, ...]:
    """Name the damaged pieces that keep a checkpoint from being restored; nothing where none does.

    A checkpoint that merely hangs on them is whole itself, and is usable again once they are.
    """
    seen = survey(store, workflow_id)
    return in_the_way(seen, starts(store, workflow_id, seen), sequence)


def in_the_way(seen: Survey, starts: list[int], sequence: int) -> tuple[Damage, ...]:
    """Tell which of the damage that was seen stands between a checkpoint and the last state before it.

    Args:
        seen: what is damaged.
        starts: sequences whose whole state is stored and can be believed.
        sequence: the checkpoint.
    """
    start = max((one for one in starts if one <= sequence), default=0)
    way = [one for one in seen.damage if start <= one.sequence <= sequence]
    if not start:
        return tuple(way)
    # The state that the way begins with is whole without the record beside it.
    way = [one for one in way if one.piece is not Piece.RECORD or one.sequence > start]
    return tuple(way) if any(one.piece is not Piece.KEYFRAME for one in way) else ()


def starts(store: Store, workflow_id: str, seen: Survey) -> list[int]:
    """Name the keyframes that a way can begin with: whole, and with a whole record where they need one."""
    broken = {one.sequence for one in seen.damage if one.piece is Piece.KEYFRAME}
    unrecorded = {one.sequence for one in seen.damage if one.piece is Piece.RECORD}
    whole = [one.sequence for one in store.keyframes(workflow_id) if one.sequence not in broken]
    return [one for one in whole if one not in unrecorded or _stands_alone(store, workflow_id, one)]


def _stands_alone(store: Store, workflow_id: str, sequence: int) -> bool:
    """Tell whether a keyframe names the checksum of its checkpoint; else the record names the keyframe."""
    try:
        lines = store.keyframe(workflow_id, sequence).split(b"\n", 3)
        # A readable one has its header on a line of its own.
        head = lines[2].removeprefix(b'"header": ').rstrip(b",") if lines[0] == b"{" else lines[0]
        fields = plainjson.loads(head)
        return bool(fields.get("header", fields)["checkpoint_id"].get("checksum"))
    except (CheckpointError, IndexError, KeyError, TypeError, AttributeError):
        return False
