"""The next checkpoint of a workflow, from its base and a snapshot of the state."""

from __future__ import annotations

from holdfast.application.base import Base
from holdfast.application.draft import Draft, Drafting, Subject
from holdfast.application.kit import Kit
from holdfast.application.snapshot import Snapshot, changes, from_plain
from holdfast.domain.delta import Operation


def derive(kit: Kit, subject: Subject, base: Base, snapshot: Snapshot, size_bytes: int) -> Draft | None:
    """Work out the next checkpoint; None if it would only repeat the last one."""
    if base.snapshot is None or _is_rekeyed(kit, subject.command.workflow_id, base):
        return Drafting(kit, subject, base, snapshot, size_bytes).whole()
    ops, is_bare = _changes(kit, base, snapshot)
    is_repeated = not ops and base.id is not None and subject.fingerprint == base.fingerprint
    # A note is told with a checkpoint of its own, or nowhere.
    if is_repeated and not subject.command.force and not subject.command.note:
        return None
    return Drafting(kit, subject, base, snapshot, size_bytes).change(ops, is_bare=is_bare)


def _changes(kit: Kit, base: Base, snapshot: Snapshot) -> tuple[list[Operation], bool]:
    """Find what changed since the base, as it is stored: without secrets; and whether there are none."""
    packer, redactor = kit.packer, kit.redactor
    if redactor is None or base.snapshot is None:
        return changes(base.snapshot, snapshot, packer), False
    if base.is_read_back:
        # What is stored may have been hidden by other rules than today's, or not at all.
        plain = snapshot.plain(packer)
        hidden = redactor.tree(plain)
        return changes(base.snapshot, from_plain(hidden, packer), packer), hidden is plain
    ops = changes(base.snapshot, snapshot, packer)
    if not ops:
        return ops, base.is_bare
    ops, paths = redactor.operations(ops, lambda path: snapshot.value_at(path, packer))
    return ops, base.is_bare and not paths


def _is_rekeyed(kit: Kit, workflow_id: str, base: Base) -> bool:
    """Tell whether the key of the last checkpoint was destroyed: nothing can be built on that one."""
    return kit.vault is not None and kit.vault.sealer(workflow_id).key_id != base.key_id
