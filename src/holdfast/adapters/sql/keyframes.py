"""Storing a derived keyframe, also in place of one that was damaged."""

from __future__ import annotations

from holdfast.adapters.sql import rows
from holdfast.adapters.sql.database import Parameters, Transaction
from holdfast.domain.errors import CheckpointCorruptError
from holdfast.domain.record import Keyframe

#: A dialect may have it locked until the transaction ends.
CHECKPOINT = "select pruned from checkpoints where workflow_id = :workflow_id and sequence = :sequence"
_IS_STORED = "select 1 from keyframes where workflow_id = :workflow_id and sequence = :sequence"
_HAS_BLOB = "select 1 from blobs where sha256 = :sha256"

_KEYFRAME = f"""
insert into keyframes (workflow_id, {rows.KEYFRAME_COLUMNS}, data)
values (:workflow_id, {", ".join(f":{name}" for name in rows.KEYFRAME_NAMES)}, :data)
on conflict (workflow_id, sequence) do nothing
"""

_STORED = "select sha256, data from keyframes where workflow_id = :workflow_id and sequence = :sequence"
_DROP = "delete from keyframes where workflow_id = :workflow_id and sequence = :sequence"
_DROP_USES = """
delete from blob_uses where workflow_id = :workflow_id and sequence = :sequence and kind = 'keyframe'
"""

_USE = """
insert into blob_uses (sha256, workflow_id, sequence, kind)
values (:sha256, :workflow_id, :sequence, 'keyframe')
"""


def put_keyframe(
    transaction: Transaction, workflow_id: str, keyframe: Keyframe, *, checkpoint: str = CHECKPOINT
) -> None:
    """Store a keyframe beside its checkpoint; one that is there already and whole stays as it is.

    One that comes when its checkpoint was removed is not wanted any more: what was erased would be back.

    Raises:
        CheckpointNotFoundError: the checkpoint, or a blob that the keyframe refers to, is not stored.
    """
    entry = keyframe.entry
    key: Parameters = {"workflow_id": workflow_id, "sequence": entry.sequence}
    found = transaction.rows(checkpoint, key)
    if not found:
        raise rows.no_checkpoint(workflow_id, entry.sequence)
    if found[0][0] and not transaction.rows(_IS_STORED, key):
        return
    named = zip(rows.KEYFRAME_NAMES, rows.keyframe_row(entry), strict=True)
    row = {"workflow_id": workflow_id, **dict(named), "data": keyframe.data}
    if not transaction.run(_KEYFRAME, row):
        if _is_whole(transaction, key):
            return
        transaction.run(_DROP_USES, key)
        transaction.run(_DROP, key)
        transaction.run(_KEYFRAME, row)
    for sha256 in sorted(set(entry.blobs)):
        if not transaction.rows(_HAS_BLOB, {"sha256": sha256}):
            raise rows.no_blob(sha256)
        transaction.run(_USE, {"sha256": sha256, **key})


def _is_whole(transaction: Transaction, key: Parameters) -> bool:
    """Tell whether the stored keyframe is the one that was committed."""
    try:
        for sha256, data in transaction.rows(_STORED, key):
            rows.verified(data, sha256, "a keyframe")
    except CheckpointCorruptError:
        return False
    return True
