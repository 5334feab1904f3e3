"""Where a checkpoint comes from: the checkpoints it continues, one after the other, back to the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.loading import record_fields
from holdfast.application.reading import Reader
from holdfast.application.records import Opened, open_record, read_fields, unsealed
from holdfast.application.resolve import Found
from holdfast.application.restore import read_chain
from holdfast.application.revealing import reveal
from holdfast.domain.checkpoint import DEFAULT_MAX_RETRIES, Checkpoint, CheckpointMeta, CheckpointStatus
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointReadError,
    CheckpointRecoveryError,
    ChecksumMismatchError,
)
from holdfast.domain.event import Event
from holdfast.domain.record import Entry

_BLOCK_RECORDS = 256


class Ancestry:
    """The parents of a checkpoint: those that were named, else the checkpoint before."""

    def __init__(self, kit: Kit, reader: Reader, found: Found) -> None:
        self._kit = kit
        self._reader = reader
        self._found = found
        self._entries: dict[str, dict[int, Entry]] = {}
        self._uuids: dict[str, dict[str, Entry]] = {}
        #: UUIDs of parents that were named, by workflow and sequence; "" where none was.
        self._named: dict[tuple[str, int], str] = {}
        self._links: list[Found] | None = None

    def links(self) -> list[Found]:
        """Name the checkpoint and its parents, the oldest first; a pruned one ends the line, and is left out.

        Raises:
            CheckpointRecoveryError: a parent that was named is not in the store.
        """
        if self._links is None:
            links, seen = list[Found](), set[tuple[str, int]]()
            link: Found | None = self._found
            while link is not None and not link.entry.pruned:
                place = (link.workflow_id, link.entry.sequence)
                if place in seen:
                    raise _broken(self._found, f"{link} is its own ancestor")
                seen.add(place)
                links.append(link)
                link = self._parent(link)
            self._links = links[::-1]
        return self._links

    def checkpoints(self) -> list[Checkpoint]:
        """Describe the checkpoint and its parents, the oldest first.

        Raises:
            CheckpointRecoveryError: a parent that was named is not in the store.
            CheckpointCorruptError: one of them is not what was committed.
        """
        links = self.links()
        parents = [None, *(link.entry.uuid for link in links)]
        statuses = self._statuses(links)
        described = zip(links, self._all_fields(links), parents, strict=False)
        return [
            _checkpoint(
                self._kit, link, fields, parent, statuses.get((link.workflow_id, link.entry.sequence))
            )
            for link, fields, parent in described
        ]

    def _statuses(self, links: Sequence[Found]) -> dict[tuple[str, int], Event]:
        """Read the last change of status of each, the journal of a workflow once."""
        changed: dict[str, list[Entry]] = {}
        for link in links:
            if link.entry.status != CheckpointStatus.ACTIVE:
                changed.setdefault(link.workflow_id, []).append(link.entry)
        return {
            (workflow_id, sequence): event
            for workflow_id, entries in changed.items()
            for sequence, event in self._reader.last_statuses(workflow_id, entries).items()
        }

    def _all_fields(self, links: Sequence[Found]) -> Iterator[dict[str, Any]]:
        """Read the records of checkpoints, verified, many at once where they follow each other."""
        for block in _blocks(links):
            workflow_id, first = block[0].workflow_id, block[0].entry.sequence
            chain = read_chain(self._kit.store, workflow_id, first, block[-1].entry.sequence)
            for link, record in zip(block, chain, strict=True):
                if record.checksum != link.entry.checksum:
                    raise ChecksumMismatchError(
                        "the record is not the one that was committed", place=str(link)
                    )
            yield from read_fields(unsealed(chain, self._kit.vault, workflow_id, first))

    def _parent(self, link: Found) -> Found | None:
        named = self._named_parent(link)
        if named:
            return self._by_uuid(link, named)
        if not link.entry.parent:
            return None
        entry = self._workflow(link.workflow_id).get(link.entry.parent)
        if entry is None:
            missing = f"{link.workflow_id}@{link.entry.parent}"
            raise _broken(self._found, f"{link} continues {missing}, which is not in the store")
        return Found(link.workflow_id, entry)

    def _by_uuid(self, link: Found, uuid: str) -> Found:
        """Find a parent that was named: mostly in the same workflow, which was read already."""
        if link.workflow_id not in self._uuids:
            listed = self._workflow(link.workflow_id).values()
            self._uuids[link.workflow_id] = {entry.uuid: entry for entry in listed}
        entry = self._uuids[link.workflow_id].get(uuid)
        if entry is not None:
            return Found(link.workflow_id, entry)
        for found in self._kit.store.find(uuid):
            if found[1].uuid == uuid:
                return Found(*found)
        raise _broken(self._found, f"{link} continues {uuid}, which is not in the store")

    def _workflow(self, workflow_id: str) -> dict[int, Entry]:
        if workflow_id not in self._entries:
            listed = self._kit.store.entries(workflow_id)
            self._entries[workflow_id] = {entry.sequence: entry for entry in listed}
        return self._entries[workflow_id]

    def _named_parent(self, link: Found) -> str:
        """Answer the UUID of the parent that a record names; nothing where it names none, or is damaged."""
        place = (link.workflow_id, link.entry.sequence)
        if place not in self._named:
            self._read_block(link)
        return self._named.get(place, "")

    def _read_block(self, link: Found) -> None:
        """Read many records at once; where one of them is damaged, just the one that is needed."""
        last = link.entry.sequence
        entries = self._workflow(link.workflow_id)
        wanted = range(max(1, last - _BLOCK_RECORDS + 1), last + 1)
        kept = [sequence for sequence in wanted if sequence in entries and not entries[sequence].pruned]
        try:
            for data in self._kit.store.records(link.workflow_id, kept[0], last):
                self._note(link.workflow_id, data, entries)
        except (CheckpointError, ValueError, IndexError):
            self._named[(link.workflow_id, last)] = self._named_alone(link)

    def _note(self, workflow_id: str, data: bytes, entries: Mapping[int, Entry]) -> None:
        [fields] = read_fields([Opened(data[: data.find(b"\n") + 1], b"", "")])
        sequence, parent = fields.get("seq"), fields.get("parent")
        if type(sequence) is int and parent is None and sequence - 1 in entries:
            parent = entries[sequence - 1].checksum
        if type(sequence) is int and sequence in entries and type(parent) is str:
            opened = open_record(data, parent, workflow_id, sequence)
            if opened.checksum == entries[sequence].checksum:
                self._named[(workflow_id, sequence)] = str(fields.get("parent_id") or "")

    def _named_alone(self, link: Found) -> str:
        try:
            fields = record_fields(self._kit.store, link.workflow_id, link.entry)
        except CheckpointError:
            # Its state may verify all the same, by a keyframe: then it continues the one before it.
            return ""
        return str(fields.get("parent_id") or "")


def described(kit: Kit, reader: Reader, found: Found) -> Checkpoint:
    """Describe a checkpoint without telling anybody: the states of its stage and agent as they were given."""
    fields = record_fields(kit.store, found.workflow_id, found.entry, kit.vault)
    last = None
    if found.entry.status != CheckpointStatus.ACTIVE:
        # With a damaged event only the words of the last error are lost.
        with suppress(CheckpointReadError):
            last = reader.last_status(found)
    before = (one for one in kit.store.entries(found.workflow_id) if one.sequence == found.entry.parent)
    parent = next((one.uuid for one in before), None)
    return _checkpoint(kit, found, fields, parent, last)


def _checkpoint(
    kit: Kit, found: Found, fields: Mapping[str, Any], parent: str | None, last: Event | None
) -> Checkpoint:
    states: dict[str, Any] = {name: fields.get(name, {}) for name in ("stage_state", "agent_state")}
    reveal(states, kit.resolver, kit.packer)
    meta = CheckpointMeta.from_entry(found.workflow_id, found.entry)
    return Checkpoint(
        id=meta.id,
        type=meta.type,
        created_at=meta.created_at,
        updated_at=last.timestamp if last else meta.created_at,
        status=meta.status,
        stage_state=kit.registry.revive(states["stage_state"]),
        agent_state=kit.registry.revive(states["agent_state"]),
        parent_checkpoint_id=fields.get("parent_id") or parent,
        dependent_checkpoint_ids=tuple(fields.get("deps", ())),
        resume_handler=fields.get("handler"),
        retry_count=meta.retry_count,
        max_retries=fields.get("max_retries", DEFAULT_MAX_RETRIES),
        error_message=last.data.get("error_message") if last else None,
        error_stacktrace=last.data.get("error_stacktrace") if last else None,
        schema_version=fields.get("schema", meta.schema_version),
        session_id=meta.session_id,
        agent_version=fields.get("agent_version"),
    )


def _blocks(links: Sequence[Found]) -> Iterator[list[Found]]:
    """Group links that follow each other in one workflow, not too many at once."""
    block: list[Found] = []
    for link in links:
        last = block[-1] if block else link
        follows = (link.workflow_id, link.entry.sequence) == (last.workflow_id, last.entry.sequence + 1)
        if block and not (follows and len(block) < _BLOCK_RECORDS):
            yield block
            block = []
        block.append(link)
    if block:
        yield block


def _broken(found: Found, why: str) -> CheckpointRecoveryError:
    return CheckpointRecoveryError(
        f"the chain of checkpoints is broken: {why}",
        place=str(found),
        hint="Bring the missing workflow back (`holdfast copy`), recover from another checkpoint, or skip "
        "the validation if the work does not need what came before.",
    )
