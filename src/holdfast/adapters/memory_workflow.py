"""What the store in memory keeps about one workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from holdfast.domain.record import Entry, EventRecord, Head, Keyframe, Record, Transition


@dataclass(slots=True)
class Workflow:
    """Everything kept about one workflow. A tombstone has an entry, and a record while its group stays."""

    head: Head = field(default_factory=Head)
    entries: dict[int, Entry] = field(default_factory=dict)
    records: dict[int, bytes] = field(default_factory=dict)
    keyframes: dict[int, Keyframe] = field(default_factory=dict)
    events: list[EventRecord] = field(default_factory=list)

    @property
    def size_bytes(self) -> int:
        """Bytes of everything but blobs."""
        return (
            sum(map(len, self.records.values()))
            + sum(len(keyframe.data) for keyframe in self.keyframes.values())
            + sum(len(event.data) for event in self.events)
        )

    def add(self, record: Record) -> None:
        """Keep a checkpoint as the last one."""
        entry = record.entry
        self.entries[entry.sequence] = entry
        if record.data:
            # A tombstone that arrives from another store may have none.
            self.records[entry.sequence] = record.data
        self.head = Head(entry.sequence, entry.checksum, self.head.event_seq, self.head.event_hash)

    def move(self, transition: Transition) -> None:
        """Change the status of a checkpoint."""
        self.entries[transition.sequence] = replace(
            self.entries[transition.sequence],
            status=transition.status,
            retry_count=transition.retry_count,
            pinned=transition.pinned,
        )

    def drop_group(self, group: int) -> None:
        """Forget the records of a group and its keyframe."""
        self.keyframes.pop(group, None)
        for sequence, entry in self.entries.items():
            if entry.group == group:
                self.records.pop(sequence, None)
                self.entries[sequence] = replace(entry, blobs=())

    def evidence(self, sequence: int, blobs: Mapping[str, bytes]) -> list[tuple[str, bytes]]:
        """Answer everything kept of one checkpoint, as it is."""
        entry, keyframe = self.entries.get(sequence), self.keyframes.get(sequence)
        named = {*(entry.blobs if entry else ()), *(keyframe.entry.blobs if keyframe else ())}
        record = [("record", self.records[sequence])] if sequence in self.records else []
        whole = [("keyframe", keyframe.data)] if keyframe else []
        return [*record, *whole, *((f"blob-{name}", blobs[name]) for name in sorted(named) if name in blobs)]
