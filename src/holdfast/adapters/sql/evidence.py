"""What the tables hold of one checkpoint, believed by nobody."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from holdfast.adapters.sql import cutting, rows
from holdfast.adapters.sql.database import Parameters, Reads, Row
from holdfast.domain.errors import CheckpointCorruptError

_RECORD = f"""
select {", ".join(cutting.RECORD_NAMES)} from checkpoints
where workflow_id = :workflow_id and sequence = :sequence
"""
_KEYFRAME = "select data from keyframes where workflow_id = :workflow_id and sequence = :sequence"
_NAMED = (
    "select blobs from checkpoints where workflow_id = :workflow_id and sequence = :sequence",
    "select blobs from keyframes where workflow_id = :workflow_id and sequence = :sequence",
)
_BLOB = "select data from blobs where sha256 = :sha256"


def evidence(reads: Reads, workflow_id: str, sequence: int) -> Iterator[tuple[str, bytes]]:
    """Yield record, keyframe and blobs of a checkpoint as they are; what cannot be read is left out."""
    key: Parameters = {"workflow_id": workflow_id, "sequence": sequence}
    yield from _record(reads, workflow_id, key)
    yield from _raw(reads, "keyframe", _KEYFRAME, key)
    for sha256 in sorted(_blobs(reads, key)):
        yield from _raw(reads, f"blob-{sha256}", _BLOB, {"sha256": sha256})


def _record(reads: Reads, workflow_id: str, key: Parameters) -> Iterator[tuple[str, bytes]]:
    """Yield the record as it was committed, as far as that can be put together from its columns."""
    found: list[Row] = []
    with suppress(CheckpointCorruptError):
        found = [row for row in reads.rows(_RECORD, key) if row[-1] is not None]
    for row in found:
        try:
            yield "record", rows.read_record(row, workflow_id)
        except CheckpointCorruptError:
            yield "record", _as_bytes(row[-1])


def _raw(reads: Reads, name: str, query: str, key: Parameters) -> Iterator[tuple[str, bytes]]:
    found: list[Any] = []
    with suppress(CheckpointCorruptError):
        found = [row[0] for row in reads.rows(query, key) if row[0] is not None]
    yield from ((name, _as_bytes(value)) for value in found)


def _as_bytes(value: Any) -> bytes:
    """Take anything a column may have been changed to."""
    is_bytes = isinstance(value, bytes | bytearray | memoryview)
    return bytes(value) if is_bytes else str(value).encode("utf-8", "surrogateescape")


def _blobs(reads: Reads, key: Parameters) -> set[str]:
    """Names of the blobs that a checkpoint and its keyframe refer to, as far as they can be read."""
    names: set[str] = set()
    for query in _NAMED:
        with suppress(CheckpointCorruptError):
            for row in reads.rows(query, key):
                text = rows.read_text(row[0], "the names of blobs")
                names.update(rows.read_blobs(text, "the names of blobs"))
    return names
