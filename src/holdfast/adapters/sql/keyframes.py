"""Storing a derived keyframe."""

from __future__ import annotations

from holdfast.adapters.sql import rows
from holdfast.adapters.sql.database import Transaction
from holdfast.domain.record import Keyframe

_CHECKPOINT = "select 1 from checkpoints where workflow_id = :workflow_id and sequence = :sequence"
_HAS_BLOB = "select 1 from blobs where sha256 = :sha256"

_KEYFRAME = f"""
insert into keyframes (workflow_id, {rows.KEYFRAME_COLUMNS}, data)
values (:workflow_id, {", ".join(f":{name}" for name in rows.KEYFRAME_NAMES)}, :data)
on conflict (workflow_id, sequence) do nothing
"""

_USE = """
insert into blob_uses (sha256, workflow_id, sequence, kind)
values (:sha256, :workflow_id, :sequence, 'keyframe')
"""


def put_keyframe(transaction: Transaction, workflow_id: str, keyframe: Keyframe) -> None:
    """Store a keyframe beside its checkpoint; one that is there already stays as it is.

    Raises:
        CheckpointNotFoundError: the checkpoint, or a blob that the keyframe refers to, is not stored.
    """
    entry = keyframe.entry
    key = {"workflow_id": workflow_id, "sequence": entry.sequence}
    if not transaction.rows(_CHECKPOINT, key):
        raise rows.no_checkpoint(workflow_id, entry.sequence)
    named = zip(rows.KEYFRAME_NAMES, rows.keyframe_row(entry), strict=True)
    if not transaction.run(_KEYFRAME, {"workflow_id": workflow_id, **dict(named), "data": keyframe.data}):
        return
    for sha256 in sorted(set(entry.blobs)):
        if not transaction.rows(_HAS_BLOB, {"sha256": sha256}):
            raise rows.no_blob(sha256)
        transaction.run(_USE, {"sha256": sha256, **key})
