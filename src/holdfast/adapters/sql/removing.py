"""Removing checkpoints: tombstones stay, bytes go. One transaction holds all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.adapters.sql.database import Parameters, Transaction
from holdfast.domain.record import Removal

_TOMBSTONES = """
update checkpoints set pruned = true
where workflow_id = :workflow_id and sequence between :first and :last and not pruned
"""

_STORED = """
select sequence, grp, length(data) from checkpoints
where workflow_id = :workflow_id and sequence >= :first and data is not null order by sequence
"""

DROP_RECORDS = """
update checkpoints set data = null
where workflow_id = :workflow_id and sequence between :first and :last and data is not null
"""

_DROP_RECORD_USES = """
delete from blob_uses
where workflow_id = :workflow_id and kind = 'record' and sequence between :first and :last
"""

_KEYFRAME_BYTES = """
select length from keyframes where workflow_id = :workflow_id and sequence = :sequence
"""

_DROP_KEYFRAME = "delete from keyframes where workflow_id = :workflow_id and sequence = :sequence"

_DROP_KEYFRAME_USES = """
delete from blob_uses where workflow_id = :workflow_id and kind = 'keyframe' and sequence = :sequence
"""

_EVENT_BYTES = """
select sum(length(data)) from events where workflow_id = :workflow_id and seq <= :through
"""

# The last event is where the workflow stands: its row stays, its bytes go.
_EMPTY_LAST_EVENT = """
update events set data = null
where workflow_id = :workflow_id and seq <= :through
and seq = (select max(seq) from events where workflow_id = :workflow_id)
"""

_DROP_EVENTS = """
delete from events
where workflow_id = :workflow_id and seq <= :through
and seq < (select max(seq) from events where workflow_id = :workflow_id)
"""

_UNUSED_BLOB_BYTES = """
select length(data) from blobs
where sha256 = :sha256 and not exists (select 1 from blob_uses where blob_uses.sha256 = blobs.sha256)
"""

_DROP_BLOB = "delete from blobs where sha256 = :sha256"


def remove(
    transaction: Transaction, workflow_id: str, removal: Removal, *, drop_records: str = DROP_RECORDS
) -> int:
    """Do all that a removal asks for; answer the bytes given back.

    Args:
        transaction: What all of it is done in.
        workflow_id: The workflow.
        removal: What goes.
        drop_records: A statement like `DROP_RECORDS`, where a dialect has a better one.
    """
    mark(transaction, workflow_id, removal.sequences)
    freed_bytes = drop_groups(transaction, workflow_id, removal.groups, drop_records)
    freed_bytes += drop_events(transaction, workflow_id, removal.events_through)
    # In the order of their names, so that two who remove the same ones never wait for each other in a circle.
    return freed_bytes + sum(drop_unused(transaction, sha256) for sha256 in sorted(set(removal.blobs)))


def mark(transaction: Transaction, workflow_id: str, sequences: Iterable[int]) -> None:
    """Make tombstones of checkpoints."""
    for first, last in runs(sequences):
        transaction.run(_TOMBSTONES, {"workflow_id": workflow_id, "first": first, "last": last})


def drop_groups(
    transaction: Transaction, workflow_id: str, groups: Iterable[int], drop_records: str = DROP_RECORDS
) -> int:
    """Drop the records and the keyframe of each group; answer their bytes."""
    dropped = set(groups)
    if not dropped:
        return 0
    freed_bytes = 0
    going = []
    # Records of a group come after its keyframe.
    for sequence, group, length in transaction.rows(
        _STORED, {"workflow_id": workflow_id, "first": min(dropped)}
    ):
        if group in dropped:
            going.append(sequence)
            freed_bytes += length
    for first, last in runs(going):
        span = {"workflow_id": workflow_id, "first": first, "last": last}
        transaction.run(drop_records, span)
        transaction.run(_DROP_RECORD_USES, span)
    return freed_bytes + sum(
        _drop_keyframe(transaction, {"workflow_id": workflow_id, "sequence": group}) for group in dropped
    )


def _drop_keyframe(transaction: Transaction, key: Parameters) -> int:
    freed_bytes = sum(row[0] for row in transaction.rows(_KEYFRAME_BYTES, key))
    transaction.run(_DROP_KEYFRAME, key)
    transaction.run(_DROP_KEYFRAME_USES, key)
    return int(freed_bytes)


def drop_events(transaction: Transaction, workflow_id: str, through: int) -> int:
    """Drop events up to one; answer their bytes."""
    if not through:
        return 0
    span = {"workflow_id": workflow_id, "through": through}
    [(freed_bytes,)] = transaction.rows(_EVENT_BYTES, span)
    transaction.run(_DROP_EVENTS, span)
    transaction.run(_EMPTY_LAST_EVENT, span)
    return int(freed_bytes or 0)


def drop_unused(transaction: Transaction, sha256: str) -> int:
    """Drop a blob that nothing refers to; answer its bytes."""
    key = {"sha256": sha256}
    found = transaction.rows(_UNUSED_BLOB_BYTES, key)
    return int(found[0][0]) if found and transaction.run(_DROP_BLOB, key) else 0


def runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Put numbers together into the runs without a gap that they form."""
    ordered = sorted(set(numbers))
    start = 0
    for at in range(1, len(ordered) + 1):
        if at == len(ordered) or ordered[at] != ordered[at - 1] + 1:
            yield ordered[start], ordered[at - 1]
            start = at
