"""Removing, and taking away with it what writers left that were killed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from holdfast.adapters.filesystem import layout
from holdfast.adapters.filesystem.disk import Disk
from holdfast.adapters.filesystem.group import Group
from holdfast.adapters.filesystem.leftovers import unnamed_blobs
from holdfast.adapters.filesystem.overlay import Files
from holdfast.adapters.filesystem.removal import Plan, plan_removal, plan_sweep
from holdfast.adapters.filesystem.staging import staged_files, sweep_staged
from holdfast.adapters.filesystem.views import Views
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.record import Removal


class Remover:
    """Commits removals."""

    def __init__(
        self,
        disk: Disk,
        files: Files,
        views: Views,
        appending: AbstractContextManager[None],
        write: Callable[[Callable[[Group], None]], Group],
    ) -> None:
        """Take what a removal is worked out from and committed with.

        Args:
            appending: the append lock.
            write: commits what a draft puts into a group, under that lock.
        """
        self._disk = disk
        self._files = files
        self._views = views
        self._appending = appending
        self._write = write

    def remove(self, workflow_id: str, removal: Removal, rewrite_bytes_max: int) -> int:
        """Commit a removal; answers the bytes it gives back.

        What killed writers left goes with it where it erases, and else where one of them left its key: to
        look through all manifests is much for a removal that is made after many a commit.
        """
        is_swept = removal.erases or bool(staged_files(self._disk))
        if is_swept:
            going = layout.workflow_folder(workflow_id) if removal.erases else ""
            left = unnamed_blobs(self._files, self._views, going)
            removal = replace(removal, blobs=(*removal.blobs, *left))

        def plan() -> Plan:
            return plan_removal(self._files, self._views, workflow_id, removal, rewrite_bytes_max)

        freed_bytes = self._commit(plan, removal.audit)
        return freed_bytes + self._sweep_staged() if is_swept else freed_bytes

    def sweep(self) -> int:
        """Take away what killed writers left; answers the bytes that gives back."""
        left = unnamed_blobs(self._files, self._views)
        freed_bytes = self._commit(lambda: plan_sweep(self._files, self._views, left)) if left else 0
        return freed_bytes + self._sweep_staged()

    def _commit(self, plan: Callable[[], Plan], audit: Sequence[AuditEntry] = ()) -> int:
        planned = Plan()

        def draft(group: Group) -> None:
            nonlocal planned
            planned = plan()
            group.do(planned.operations)
            group.tell(audit)

        self._write(draft)
        return planned.freed_bytes

    def _sweep_staged(self) -> int:
        # After the blobs: until then a key tells the next removal that there is something to take away.
        with self._appending:
            return sweep_staged(self._disk)
