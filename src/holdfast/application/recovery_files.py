"""Two small files for whoever looks into a store at night: the latest workflows, and what failed to resume.

`recovery/latest.json` points to the last checkpoint of the most recent workflows. `recovery/failures.jsonl`
has a line for each resumption that failed. Both are views: what is true stands in the journal of events.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import Any

from holdfast.application.kit import Kit
from holdfast.application.resolve import Found, living
from holdfast.application.trailing import Trail
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointError,
    StateTooLargeError,
    StoreClosedError,
)
from holdfast.domain.json_reading import read_json, read_object
from holdfast.domain.time import timestamp_text

LATEST = "recovery/latest.json"
FAILURES = "recovery/failures.jsonl"
LATEST_MAX = 100
FAILURES_MAX = 500
_MESSAGE_CHARS_MAX = 300
_ATTEMPTS_MAX = 20
_LOG = logging.getLogger("holdfast")

Files = dict[str, bytes | None]


class RecoveryFiles:
    """Writes and reads the two files."""

    def __init__(self, kit: Kit, trail: Trail) -> None:
        self._kit = kit
        self._trail = trail

    def latest(self) -> list[dict[str, Any]]:
        """Tell the last checkpoints of the most recent workflows, the most recent first."""
        return self._read_latest(self._kit.store.file(LATEST))

    def failures(self) -> list[dict[str, Any]]:
        """Tell the resumptions that failed, the last one last."""
        return self._read_failures(self._kit.store.file(FAILURES))

    def record(
        self,
        workflow_ids: Iterable[str],
        failure: dict[str, Any] | None = None,
        told: tuple[AuditEntry, ...] = (),
    ) -> None:
        """Bring both files up to date, together with entries of the trail.

        They are only views: that they cannot be written is logged, and keeps nobody from working.

        Args:
            workflow_ids: workflows that something was recorded of.
            failure: a resumption that failed.
            told: what the trail is told with it.
        """
        touched = list(workflow_ids)
        if self._kit.store.read_only or not (touched or failure or told):
            return
        try:
            self._commit(touched, failure, told)
        except StoreClosedError:
            return
        except CheckpointError as problem:
            _LOG.warning("%s and %s are behind: %s", LATEST, FAILURES, problem)
            self._trail.note(*told)

    def rebuild(self) -> list[dict[str, Any]]:
        """Make the file of the latest workflows anew from what the store holds."""
        self.record(self._kit.store.workflows())
        return self.latest()

    def without(self, workflow_ids: Iterable[str]) -> Files:
        """Answer the files without what they tell of workflows; those that tell nothing are left out."""
        gone = set(workflow_ids)
        files = Files()
        for name, read, write in (
            (LATEST, self._read_latest, self._latest_bytes),
            (FAILURES, self._read_failures, self._failure_bytes),
        ):
            data = self._kit.store.file(name)
            items = read(data)
            kept = [item for item in items if item.get("workflow_id") not in gone]
            if data is not None and not items:
                # What cannot be read may tell anything.
                files[name] = None
            elif len(kept) < len(items):
                files[name] = write(kept) if kept else None
        return files

    def failure_of(
        self, found: Found, handler: str | None, error: str, message: str | None, retry_count: int
    ) -> dict[str, Any]:
        """Put a failure into the shape of its line.

        Args:
            error: the name of its kind.
            message: what it says, without secrets.
        """
        entry = found.entry
        return {
            "ts": timestamp_text(self._kit.clock.now()),
            "workflow_id": found.workflow_id,
            "stage_id": entry.stage,
            "agent_id": entry.agent,
            "sequence": entry.sequence,
            "checkpoint_id": entry.uuid,
            "handler": handler,
            "error_type": error,
            "error_message": (message or "")[:_MESSAGE_CHARS_MAX],
            "retry_count": retry_count,
            "session_id": self._kit.session_id,
        }

    def _commit(
        self, workflow_ids: list[str], failure: dict[str, Any] | None, told: tuple[AuditEntry, ...]
    ) -> None:
        failures_max = FAILURES_MAX
        for attempt in range(_ATTEMPTS_MAX):
            files, expected = self._changed(workflow_ids, failure, failures_max)
            if not files and not told:
                return
            try:
                return self._trail.commit(told, files, expected)
            except StateTooLargeError:
                # A small journal holds small files only: half of the failures are better than none.
                failures_max //= 2
            except CheckpointConflictError:
                if attempt == _ATTEMPTS_MAX - 1:
                    raise

    def _changed(
        self, workflow_ids: list[str], failure: dict[str, Any] | None, failures_max: int
    ) -> tuple[Files, Files]:
        store = self._kit.store
        before = store.file(LATEST)
        after = self._latest_bytes(self._merged(self._read_latest(before), workflow_ids))
        files, expected = Files(), Files()
        if after != before:
            files[LATEST], expected[LATEST] = after, before
        if failure is not None and failures_max:
            known = store.file(FAILURES)
            kept = [*self._read_failures(known), failure][-failures_max:]
            files[FAILURES], expected[FAILURES] = self._failure_bytes(kept), known
        return files, expected

    def _merged(self, known: list[dict[str, Any]], workflow_ids: list[str]) -> list[dict[str, Any]]:
        items = {item["workflow_id"]: item for item in known}
        for workflow_id in workflow_ids:
            items.pop(workflow_id, None)
            newest = next(living(self._kit.store, workflow_id), None)
            if newest is not None:
                items[workflow_id] = _pointer(Found(workflow_id, newest))
        recent = sorted(items.values(), key=lambda item: str(item["updated_at"]), reverse=True)
        return recent[:LATEST_MAX]

    def _latest_bytes(self, items: list[dict[str, Any]]) -> bytes:
        return json.dumps({"workflows": items}, ensure_ascii=False, indent=2).encode() + b"\n"

    def _failure_bytes(self, items: list[dict[str, Any]]) -> bytes:
        """Write the lines; in an encrypted store they are sealed, for they say what went wrong."""
        data = b"".join(json.dumps(item, ensure_ascii=False).encode() + b"\n" for item in items)
        return data if self._kit.vault is None else self._kit.vault.seal_file(FAILURES, data)

    def _read_latest(self, data: bytes | None) -> list[dict[str, Any]]:
        """Read what the file says; one that is damaged says nothing, and is written anew."""
        try:
            items = read_object(data)["workflows"] if data else []
            return [item for item in items if _is_pointer(item)]
        except (ValueError, TypeError, KeyError):
            return []

    def _read_failures(self, data: bytes | None) -> list[dict[str, Any]]:
        if not data:
            return []
        try:
            opened = data if self._kit.vault is None else self._kit.vault.open_file(FAILURES, data)
            items = [read_json(line) for line in opened.splitlines()]
        except (ValueError, CheckpointError):
            return []
        return [item for item in items if isinstance(item, dict)]


def _is_pointer(item: Any) -> bool:
    """Tell whether an item points to a checkpoint, as far as that decides whether it stays."""
    return all(type(item[name]) is str and item[name] for name in ("workflow_id", "updated_at"))


def _pointer(found: Found) -> dict[str, Any]:
    entry = found.entry
    return {
        "workflow_id": found.workflow_id,
        "stage_id": entry.stage,
        "agent_id": entry.agent,
        "sequence": entry.sequence,
        "checkpoint_id": entry.uuid,
        "type": entry.type,
        "status": entry.status,
        "retry_count": entry.retry_count,
        "updated_at": entry.timestamp,
    }
