"""Everything about one person, for that person: states, events, audit entries with their proofs, in JSON.

What is about others too is not given away whole: of a workflow that several people were declared for, or
nobody was, only what was sealed for this person is in the export.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.application.audit.audit_export import Piece, write_folder
from holdfast.application.audit.audit_log import AuditLog
from holdfast.application.audit.log_keeping import LogKeeper
from holdfast.application.kit import Kit
from holdfast.application.reading import Reader
from holdfast.application.resolve import Found, living
from holdfast.application.session_files import SessionFiles
from holdfast.application.subjects import Subject, Subjects
from holdfast.application.trailing import Trail
from holdfast.domain import plainjson
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointNotFoundError, KeyDestroyedError
from holdfast.domain.ids import check_id, folder_name
from holdfast.domain.keyring_file import subject_scope
from holdfast.domain.personal import WHAT
from holdfast.domain.time import timestamp_text
from holdfast.domain.tree import TAG, copy_tree

#: Stands where somebody else's value is.
_ANOTHERS = {"personal": "another's, or erased"}


@dataclass(frozen=True, slots=True)
class SubjectExport:
    """What was written; of shared workflows only what was sealed for the person."""

    folder: Path
    workflows: tuple[str, ...]
    shared_workflows: tuple[str, ...]
    files: int
    bytes: int


class SubjectExporter:
    """Writes exports for people."""

    def __init__(
        self, kit: Kit, trail: Trail, subjects: Subjects, audit: AuditLog, keeper: LogKeeper
    ) -> None:
        self._kit = kit
        self._trail = trail
        self._subjects = subjects
        self._audit = audit
        self._keeper = keeper
        self._reader = Reader(kit)

    def write(self, subject: str, folder: str | Path) -> SubjectExport:
        """Write everything about a person into a new folder; the trail tells that it was done.

        Raises:
            CheckpointNotFoundError: nothing is known about such a person.
            ConfigError: the folder is not empty.
        """
        check_id("subject", subject)
        known = self._subjects.known(subject)
        if not known.workflows and not self._is_sealed_for(subject):
            raise CheckpointNotFoundError("nothing is known about such a subject", place=known.pseudonym)
        alone, _ = self._subjects.divided(known)
        sealed = self._sealed_elsewhere(subject, alone)
        facts: dict[str, int | str] = {"subject": known.pseudonym, "workflows": len(alone) + len(sealed)}
        self._trail.record(*self._trail.told(AuditType.SUBJECT_EXPORTED, facts=facts))
        # A head that covers what is told, where there is a key to sign one.
        self._keeper.anchor()
        files, size = write_folder(Path(folder), self._pieces(known, alone, sealed))
        return SubjectExport(Path(folder), tuple(alone), tuple(sealed), files, size)

    def _sealed_elsewhere(self, subject: str, alone: list[str]) -> dict[str, list[bytes]]:
        """Find what was sealed for a person in workflows that are not about them alone."""
        if not self._is_sealed_for(subject):
            return {}
        others = sorted(set(self._kit.store.workflows()).difference(alone))
        found = ((workflow_id, list(self._sealed(workflow_id, subject))) for workflow_id in others)
        return {workflow_id: lines for workflow_id, lines in found if lines}

    def has_sealed(self, workflow_id: str, subject: str) -> bool:
        """Tell whether a workflow holds anything that was sealed for a person."""
        return self._is_sealed_for(subject) and any(self._sealed(workflow_id, subject))

    def _is_sealed_for(self, subject: str) -> bool:
        vault = self._kit.vault
        return vault is not None and vault.keyring.find(subject_scope(subject)) is not None

    def _pieces(self, known: Subject, alone: list[str], sealed: dict[str, list[bytes]]) -> Iterator[Piece]:
        about = {
            "subject": known.name,
            "pseudonym": known.pseudonym,
            "workflows": [{"id": name, "folder": folder_name(name)} for name in alone],
            "shared_workflows": [{"id": name, "folder": folder_name(name)} for name in sealed],
        }
        yield "subject.json", [plainjson.dumps(about) + b"\n"]
        for workflow_id, lines in sealed.items():
            yield f"workflows/{folder_name(workflow_id)}/sealed.jsonl", lines
        for workflow_id in alone:
            place = f"workflows/{folder_name(workflow_id)}"
            yield f"{place}/states.jsonl", self._states(workflow_id, known.name)
            yield f"{place}/events.jsonl", self._events(workflow_id, known.name)
            yield from self._entries(workflow_id, place)
        yield from self._sessions(alone)

    def _sessions(self, alone: list[str]) -> Iterator[Piece]:
        """Give what was handed over by sessions that worked on nothing about others."""
        for session, line in SessionFiles(self._kit).lines():
            named = session.context.workflow_ids
            if named and set(named) <= set(alone):
                yield f"sessions/{folder_name(session.id)}.json", [line]

    def _states(self, workflow_id: str, subject: str) -> Iterator[bytes]:
        for about, state in self._kept_states(workflow_id):
            opened, _ = self._open(state, subject)
            yield plainjson.dumps({**about, "state": opened}) + b"\n"

    def _sealed(self, workflow_id: str, subject: str) -> Iterator[bytes]:
        """Give of each state, and each event, only what was sealed for the person."""
        for about, state in self._kept_states(workflow_id):
            _, values = self._open(state, subject)
            if values:
                yield plainjson.dumps({**about, "values": values}) + b"\n"
        for event in self._reader.opened_events(workflow_id):
            _, values = self._open(copy_tree(event.data), subject)
            if values:
                yield plainjson.dumps({"event": event.seq, "type": event.type, "values": values}) + b"\n"

    def _kept_states(self, workflow_id: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        for entry in reversed(list(living(self._kit.store, workflow_id))):
            found = Found(workflow_id, entry)
            about = {"checkpoint": str(found), "timestamp": entry.timestamp, "checksum": entry.checksum}
            try:
                state = self._reader.whole(found, self._reader.restored(found))
            except KeyDestroyedError:
                # It was erased. The workflow may have been begun anew since, under another key.
                continue
            yield about, state

    def _open(self, tree: Any, subject: str) -> tuple[Any, list[Any]]:
        """Put what was sealed for a person in its place, at any depth; answer the tree, and what that was."""
        root, values = [tree], list[Any]()
        todo: list[Any] = [root]
        while todo:
            owner = todo.pop()
            for key, value in list(owner.items() if type(owner) is dict else enumerate(owner)):
                if type(value) is dict and value.get(TAG) == WHAT:
                    owner[key] = value = self._value(value, subject)
                    if value != _ANOTHERS:
                        values.append(value)
                elif type(value) is dict or type(value) is list:
                    todo.append(value)
        return root[0], values

    def _value(self, tagged: dict[str, Any], subject: str) -> Any:
        vault = self._kit.vault
        opened = vault.open_personal(tagged["key"], tagged["v"]) if vault else None
        if opened is None or opened[0] != subject:
            return _ANOTHERS
        return self._kit.packer.unpack(opened[1])

    def _events(self, workflow_id: str, subject: str) -> Iterator[bytes]:
        for event in self._reader.opened_events(workflow_id):
            data, _ = self._open(copy_tree(event.data), subject)
            fields = {
                "seq": event.seq,
                "timestamp": timestamp_text(event.timestamp),
                "type": event.type,
                "agent": event.agent,
                "data": data,
                "hash": event.hash,
            }
            yield plainjson.dumps(fields) + b"\n"

    def _entries(self, workflow_id: str, place: str) -> Iterator[Piece]:
        """Give each entry that tells of a workflow: its line, its payload, and its proof if it is covered."""
        for event in self._audit.query_events(workflow=workflow_id):
            name = f"{place}/audit/{folder_name(event.session_id)}-{event.seq:06d}"
            yield f"{name}.json", [event.line]
            if event.data is not None:
                yield f"{name}.payload.json", [plainjson.dumps(event.data) + b"\n"]
            proof = self._proof(event.session_id, event.seq)
            if proof is not None:
                yield f"{name}.tlog-proof", [proof]

    def _proof(self, session_id: str, seq: int) -> bytes | None:
        try:
            return self._keeper.proof(session_id, seq).encode()
        except CheckpointNotFoundError:
            # Nothing was signed yet that covers it.
            return None
