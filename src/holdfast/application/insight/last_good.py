"""The newest checkpoint of a workflow that nothing speaks against; no state is opened for it."""

from __future__ import annotations

from collections.abc import Collection

from holdfast.application.insight.recent_checkpoints import RecentCheckpoints
from holdfast.application.insight.run_facts import RunFacts
from holdfast.domain.errors import CheckpointError
from holdfast.domain.quarantine_marks import REFUSED, mark_name, workflow_prefix
from holdfast.domain.record import Entry
from holdfast.ports import Store

#: Names of the files that bar checkpoints; None where they cannot be listed.
Marks = Collection[str] | None


def marks_of(store: Store, workflow_id: str | None = None) -> Marks:
    """List what bars checkpoints, of one workflow or of all."""
    try:
        return frozenset(store.files(REFUSED + (workflow_prefix(workflow_id) if workflow_id else "")))
    except CheckpointError:
        return None


def last_good(recent: RecentCheckpoints, facts: RunFacts, marks: Marks) -> Entry | None:
    """Answer the newest checkpoint that is not in quarantine; None if there is none, or nobody can tell.

    Raises:
        CheckpointError: the newest is in quarantine, and the listing behind it is damaged.
    """
    if marks is None or facts.newest is None:
        return None
    if not marks or mark_name(facts.workflow_id, facts.newest.sequence) not in marks:
        return facts.newest
    older = (entry for _, entry in recent.of(facts))
    return next((one for one in older if mark_name(facts.workflow_id, one.sequence) not in marks), None)
