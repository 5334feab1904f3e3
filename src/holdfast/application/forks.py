"""Which workflow was forked from which, as the trail tells it: it remembers what pruning removed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from holdfast.domain.audit_type import AuditType
from holdfast.domain.trail import decode_entry
from holdfast.ports import Store

_FORKED = f'"type":"{AuditType.WORKFLOW_FORKED}"'.encode()


@dataclass(frozen=True, slots=True)
class Fork:
    """A workflow that began as another was: `point` names the checkpoint or the event."""

    workflow_id: str
    origin: str
    point: str


def forks(store: Store) -> Iterator[Fork]:
    """Yield all forks; one that is forked from comes before what was forked from it."""
    for line in chain(store.leaves(), store.waiting()):
        if _FORKED in line:
            entry = decode_entry(line, None)
            point = str(entry.facts.get("from", ""))
            origin, _, _ = point.rpartition("@")
            if origin and entry.workflow_id is not None:
                yield Fork(entry.workflow_id, origin, point)
