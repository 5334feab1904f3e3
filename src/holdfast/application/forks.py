"""Which workflow was forked from which.

The trail tells it, that of the store and those that came along with copies: it remembers what pruning
removed. The first checkpoint of a fork says it, too, which is all there is of one that was copied by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from holdfast.application.imports import imported_lines
from holdfast.application.kit import Kit
from holdfast.application.origins import origin_of
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
    """Yield all forks that trails tell of, each once for each trail."""
    for line in chain(store.leaves(), store.waiting(), imported_lines(store)):
        if _FORKED in line:
            entry = decode_entry(line, None)
            point = str(entry.facts.get("from", ""))
            origin, _, _ = point.rpartition("@")
            if origin and entry.workflow_id is not None:
                yield Fork(entry.workflow_id, origin, point)


def with_forks(kit: Kit, workflow_ids: Iterable[str]) -> list[str]:
    """Add to workflows what was forked from them, and from that again; each after what it comes from."""
    found = dict.fromkeys(workflow_ids)
    children: dict[str, list[str]] = {}
    for origin, fork in _pairs(kit) if found else ():
        children.setdefault(origin, []).append(fork)
    todo = list(found)
    while todo:
        new = [fork for fork in children.get(todo.pop(0), ()) if fork not in found]
        found.update(dict.fromkeys(new))
        todo += dict.fromkeys(new)
    return list(found)


def with_origins(kit: Kit, workflow_id: str) -> set[str]:
    """Add to a workflow what it was forked from, and what that was."""
    told: dict[str, set[str]] = {}
    for fork in forks(kit.store):
        told.setdefault(fork.workflow_id, set()).add(fork.origin)
    found, todo = {workflow_id}, [workflow_id]
    while todo:
        name = todo.pop()
        first = origin_of(kit, name)
        new = told.get(name, set()) | ({first.workflow_id} if first else set())
        todo += new - found
        found |= new
    return found


def _pairs(kit: Kit) -> Iterator[tuple[str, str]]:
    for fork in forks(kit.store):
        yield fork.origin, fork.workflow_id
    for workflow_id in kit.store.workflows():
        origin = origin_of(kit, workflow_id)
        if origin is not None:
            yield origin.workflow_id, workflow_id
