"""Bringing whole stores to the version of the program, workflow by workflow, with nothing rewritten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.application.commands import CreateCheckpoint, Migrated
from holdfast.application.commit_queue import Ticket
from holdfast.application.kit import Kit
from holdfast.application.loading import record_fields
from holdfast.application.migrating import is_current, migrated
from holdfast.application.reading import Reader
from holdfast.application.resolve import Found, living
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer
from holdfast.domain.checkpoint import DEFAULT_MAX_RETRIES, CheckpointMeta
from holdfast.domain.errors import (
    CheckpointError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    DiskFullError,
    KeyUnavailableError,
    PermissionDeniedError,
    StoreClosedError,
    StoreReadOnlyError,
)
from holdfast.domain.ids import CheckpointID
from holdfast.domain.plain import Plain
from holdfast.domain.record import Entry

#: What no other workflow would fare better with.
_GENERAL = (DiskFullError, KeyUnavailableError, PermissionDeniedError, StoreClosedError, StoreReadOnlyError)


class UpgradeOutcome(StrEnum):
    """How a workflow stands after its upgrade was planned or made."""

    #: Its newest checkpoint has the version of the program already.
    CURRENT = "current"
    #: Every step of its migration works; nothing was changed.
    READY = "ready"
    MIGRATED = "migrated"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What became of one workflow.

    Attributes:
        source: version of its newest checkpoint.
        steps: the migrations that lead to the version of the program, as `1.0.0 -> 1.1.0`.
        checkpoint_used: the newest checkpoint, whose state is migrated.
        checkpoint_id: the checkpoint of the migrated state; None where none was made.
        error: why it could not be migrated.
    """

    workflow_id: str
    outcome: UpgradeOutcome
    source: str
    target: str
    checkpoint_used: CheckpointID
    steps: tuple[str, ...] = ()
    checkpoint_id: CheckpointID | None = None
    error: CheckpointError | None = None


def plan_upgrade(kit: Kit, reader: Reader, workflow_ids: Iterable[str] | None = None) -> Iterator[Upgrade]:
    """Try every migration that an upgrade would make, in memory; nothing is changed.

    Args:
        workflow_ids: the workflows; all of them by default.
    """

    def tried(found: Found) -> None:
        _migrated(kit, reader, found)

    return _each(kit, workflow_ids, tried)


class Upgrading:
    """Migrates the newest state of each workflow, as a new checkpoint; everything before stays."""

    def __init__(
        self, kit: Kit, trail: Trail, writer: Writer, reader: Reader, wait: Callable[[Ticket], Any]
    ) -> None:
        self._kit = kit
        self._trail = trail
        self._writer = writer
        self._reader = reader
        self._wait = wait

    def plan(self, workflow_ids: Iterable[str] | None = None) -> Iterator[Upgrade]:
        """Try every migration that an upgrade would make, in memory; nothing is changed.

        Args:
            workflow_ids: the workflows; all of them by default.
        """
        return plan_upgrade(self._kit, self._reader, workflow_ids)

    def apply(self, workflow_ids: Iterable[str] | None = None) -> Iterator[Upgrade]:
        """Record the migrated state of each workflow, one after the other, while the answers are taken.

        A workflow whose migration fails is as it was. What was interrupted is finished by calling again.

        Args:
            workflow_ids: the workflows; all of them that have a checkpoint by default.

        Raises:
            CheckpointNotFoundError: a chosen one has no checkpoint; told before any is changed.
            CheckpointWriteError: nothing can be made durable at the moment.
        """
        return _each(self._kit, workflow_ids, self._made)

    def _made(self, found: Found) -> CheckpointID:
        with self._trail.refusals(found.workflow_id):
            command = self._command(found, _migrated(self._kit, self._reader, found))
        made: CheckpointID = self._wait(self._writer.create(command))
        # What was recorded is what was stored: without the secrets that the program has.
        self._writer.forget(found.workflow_id)
        return made

    def _command(self, found: Found, tree: dict[str, Any]) -> CreateCheckpoint:
        """Make the checkpoint that continues another in everything but the version of its state."""
        entry = found.entry
        fields = record_fields(self._kit.store, found.workflow_id, entry, self._kit.vault)
        return CreateCheckpoint(
            found.workflow_id,
            {name: Plain(value) for name, value in tree.items()},
            CheckpointMeta.from_entry(found.workflow_id, entry).type,
            phase=entry.phase,
            stage_id=entry.stage,
            agent_id=entry.agent,
            stage_state=_plain(fields.get("stage_state")),
            agent_state=_plain(fields.get("agent_state")),
            session_id=entry.session,
            agent_version=fields.get("agent_version"),
            resume_handler=fields.get("handler"),
            max_retries=fields.get("max_retries", DEFAULT_MAX_RETRIES),
            parent_uuid=fields.get("parent_id"),
            dependent_uuids=tuple(fields.get("deps", ())),
            force=True,
            # Whoever recorded something meanwhile has the newer state.
            expected_sequence=entry.sequence,
            schema_version=self._kit.app.schema_version,
            migrated=self._standing(found),
        )

    def _standing(self, found: Found) -> Migrated:
        entry = found.entry
        last = self._reader.last_status(found) if entry.status != "active" else None
        data = last.data if last else {}
        return Migrated(entry.schema, entry.event_seq, entry.status, entry.retry_count, data)


def _plain(tree: dict[str, Any] | None) -> Plain | None:
    return None if tree is None else Plain(tree)


def _each(
    kit: Kit, workflow_ids: Iterable[str] | None, one: Callable[[Found], CheckpointID | None]
) -> Iterator[Upgrade]:
    if workflow_ids is None:
        return _in_turn(kit, sorted(kit.store.workflows()), {}, one)
    # All are looked at before the first is changed: a name that is wrong stops nothing half way.
    chosen = list(workflow_ids)
    return _in_turn(kit, chosen, {name: _newest(kit, name) for name in chosen}, one)


def _in_turn(
    kit: Kit,
    workflow_ids: list[str],
    seen: Mapping[str, Entry],
    one: Callable[[Found], CheckpointID | None],
) -> Iterator[Upgrade]:
    for workflow_id in workflow_ids:
        # Others may have written since, or erased it: that is told of this one, and the rest go on.
        newest = next(living(kit.store, workflow_id), seen.get(workflow_id))
        if newest is not None:
            yield _upgrade(kit, Found(workflow_id, newest), one)


def _newest(kit: Kit, workflow_id: str) -> Entry:
    newest = next(living(kit.store, workflow_id), None)
    if newest is None:
        raise CheckpointNotFoundError("the workflow has no checkpoint", place=workflow_id)
    return newest


def _upgrade(kit: Kit, found: Found, one: Callable[[Found], CheckpointID | None]) -> Upgrade:
    source, target = found.entry.schema, kit.app.schema_version
    if is_current(kit, source):
        return Upgrade(found.workflow_id, UpgradeOutcome.CURRENT, source, target, found.id)
    try:
        chain = kit.app.migrations.chain(source, target, place=str(found))
        made = one(found)
    except CheckpointError as problem:
        if isinstance(problem, _GENERAL) or type(problem) is CheckpointWriteError:
            raise
        outcome = UpgradeOutcome.FAILED
        return Upgrade(found.workflow_id, outcome, source, target, found.id, error=problem)
    outcome = UpgradeOutcome.READY if made is None else UpgradeOutcome.MIGRATED
    return Upgrade(found.workflow_id, outcome, source, target, found.id, tuple(map(str, chain)), made)


def _migrated(kit: Kit, reader: Reader, found: Found) -> dict[str, Any]:
    """Answer the state of a checkpoint as a plain tree of the program's version."""
    restored = reader.restored(found)
    return migrated(kit, reader.whole(found, restored), restored.schema, str(found))
