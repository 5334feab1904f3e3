"""Removing checkpoints, unless a legal hold stands against it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from holdfast.application.commands import CheckpointName
from holdfast.application.holding import Holds
from holdfast.application.kit import Kit
from holdfast.application.resolve import resolve
from holdfast.application.retain import (
    Plan,
    PruneResult,
    plan_keep,
    plan_prune,
    plan_rest,
    plan_shown,
    plan_tombstone,
    secure,
    write_whole,
)
from holdfast.application.trailing import Trail
from holdfast.application.writer import Writer
from holdfast.domain.errors import CheckpointConflictError, CheckpointNotFoundError
from holdfast.domain.ids import check_workflow_id
from holdfast.domain.retention import RetentionPolicy


class Removing:
    """Removes what retention lets go and what callers name, and counts it."""

    def __init__(self, kit: Kit, trail: Trail, writer: Writer, holds: Holds) -> None:
        self._kit = kit
        self._trail = trail
        self._writer = writer
        self._holds = holds

    def prune(
        self, workflow_id: str, policy: RetentionPolicy, *, dry_run: bool = False, asked_by: str = "asked"
    ) -> PruneResult:
        """Remove what a policy does not keep and nothing kept needs.

        Args:
            asked_by: whom it is counted for.

        Raises:
            LegalHoldError: the workflow has to stay as it is.
        """
        if not dry_run:
            with self._trail.refusals(workflow_id):
                self._holds.check(workflow_id=check_workflow_id(workflow_id))
        plan = plan_prune(self._kit, workflow_id, policy)
        if dry_run or not (plan.removal.sequences or plan.removal.groups):
            return PruneResult(plan.removal.sequences, plan.freed_bytes, dry_run=dry_run)
        secure(self._kit, workflow_id, policy)
        removed = self._writer.remove(workflow_id, lambda: plan_prune(self._kit, workflow_id, policy))
        return self._counted(removed, asked_by)

    def prune_shown(self, workflow_id: str, policy: RetentionPolicy, shown: Collection[int]) -> PruneResult:
        """Remove just those checkpoints that somebody was shown, if a policy still lets all of them go.

        Raises:
            CheckpointConflictError: it does not any more; nothing was removed.
            LegalHoldError: the workflow has to stay as it is.
        """

        def plan() -> Plan:
            return plan_shown(self._kit, workflow_id, policy, shown)

        with self._trail.refusals(workflow_id):
            self._holds.check(workflow_id=check_workflow_id(workflow_id))
            plan()
        secure(self._kit, workflow_id, policy)
        return self._counted(self._writer.remove(workflow_id, plan))

    def _counted(self, removed: PruneResult, asked_by: str = "asked") -> PruneResult:
        if self._kit.observer is not None:
            self._kit.observer.pruned(int(removed), removed.freed_bytes, asked_by)
        return removed

    def keep_only(
        self, workflow_id: str, keep: Collection[int], *, through: int | None = None
    ) -> PruneResult:
        """Remove every checkpoint of a workflow but these, and what is needed for none of them.

        Args:
            through: what comes after this checkpoint stays: whoever chose did not know it.

        Raises:
            LegalHoldError: the workflow has to stay as it is.
        """
        with self._trail.refusals(workflow_id):
            self._holds.check(workflow_id=check_workflow_id(workflow_id))
        newest = next(
            entry
            for entry in self._kit.store.entries(workflow_id, newest_first=True)
            if entry.sequence in keep
        )
        write_whole(self._kit, workflow_id, newest)
        removed = self._writer.remove(workflow_id, lambda: plan_keep(self._kit, workflow_id, keep, through))
        return self._counted(removed)

    def delete(self, name: CheckpointName) -> bool:
        """Remove one checkpoint; False if there is none."""
        try:
            found = resolve(self._kit.store, name)
        except CheckpointNotFoundError:
            return False
        with self._trail.refusals(found.workflow_id):
            self._holds.check(workflow_id=found.workflow_id)
        workflow_id, sequence = found.workflow_id, found.entry.sequence
        removed = self._writer.remove(workflow_id, lambda: plan_tombstone(self._kit, workflow_id, sequence))
        # If others have gone on from what was the only one, that is a conflict, and its bytes are needed.
        with suppress(CheckpointConflictError):
            rest = self._writer.remove(workflow_id, lambda: plan_rest(self._kit, workflow_id, sequence))
            removed = replace(removed, freed_bytes=removed.freed_bytes + rest.freed_bytes)
        self._counted(removed)
        return True
