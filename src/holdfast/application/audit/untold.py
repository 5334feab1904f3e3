"""Workflows that a trail says nothing of: it was switched off when they were written, or entries are gone.

A chain proves that nothing was taken out of it, and never that it was there. What it should tell of is in the
store beside it: every checkpoint is told with its checksum, in the commit that makes it.
"""

from __future__ import annotations

import re

from holdfast.application.audit.missing import is_own, makes
from holdfast.domain.audit_type import AuditType
from holdfast.domain.trail import read_fields
from holdfast.ports import Store

_CHECKSUM = re.compile(rb'"checksum":"(sha256:[0-9a-f]{64})"')
_COPIED = f'"type":"{AuditType.STORE_COPIED}"'.encode()


def untold(store: Store) -> list[str]:
    """Name the workflows whose last checkpoint no entry tells of; those that were copied here are left out.

    What was copied is told in the trail that it was copied with.
    """
    waiting = _last_checksums(store)
    for session_id in store.sessions():
        if not waiting:
            break
        for line in store.trail(session_id):
            named = [checksum.decode() for checksum in _CHECKSUM.findall(line)]
            if _COPIED in line or not waiting.keys().isdisjoint(named):
                waiting = _without(waiting, line, named)
    return sorted(waiting.values())


def _without(waiting: dict[str, str], line: bytes, named: list[str]) -> dict[str, str]:
    """Leave out what an entry tells was made, or copied here; whoever reads a checkpoint names it, too."""
    fields = read_fields(line)
    workflow_id = fields.get("workflow")
    if is_own(fields) and fields["type"] == AuditType.STORE_COPIED:
        return {checksum: name for checksum, name in waiting.items() if name != workflow_id}
    if not makes(fields):
        return waiting
    return {checksum: name for checksum, name in waiting.items() if checksum not in named}


def _last_checksums(store: Store) -> dict[str, str]:
    """Give the workflow of each last checkpoint that is still there."""
    found: dict[str, str] = {}
    for workflow_id in store.workflows():
        entries = store.entries(workflow_id, newest_first=True)
        last = next((entry for entry in entries if not entry.pruned), None)
        if last is not None:
            found[last.checksum] = workflow_id
    return found
