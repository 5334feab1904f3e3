"""Where workflows come from: forks of checkpoints of others, and what was forked off them.

Beside `application.forks`, which reads the whole trail and also knows forks whose first checkpoint is gone:
here the first checkpoint of each workflow is asked, once, for whoever asks often.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from holdfast.application.kit import Kit
from holdfast.application.origins import Origin as Origin
from holdfast.application.origins import first_entry, origin_in

#: So many workflows that nobody asked about yet are looked into for one question.
_LEARNT_AT_ONCE = 5_000
#: So far a family is followed, up and down.
_FAMILY_MAX = 200
#: A store with so many workflows that listing them takes long is not listed again for a moment.
_LONG_SECONDS = 0.05
_REUSE_SECONDS_MAX = 5.0


@dataclass(frozen=True, slots=True)
class Fork:
    """A workflow that was forked off another: which, from what point, and when."""

    workflow_id: str
    point: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Family:
    """Forks that belong together, as pairs of a parent and a fork of it."""

    members: tuple[str, ...]
    forks: tuple[tuple[str, Fork], ...]
    #: Whether there may be more than was looked at.
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class _Learnt:
    origin: Origin | None
    created_at: str


class Lineage:
    """Knows where the workflows of a store come from; that never changes, so each is read once."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self._mutex = threading.Lock()
        self._learnt: dict[str, _Learnt] = {}
        self._is_cut = False
        self._learnt_until = 0.0

    def origin(self, workflow_id: str) -> Origin | None:
        """Answer where a workflow was forked from; None if it was not, or that cannot be read any more."""
        return self._of(workflow_id).origin

    def forks(self, workflow_id: str) -> list[Fork]:
        """Answer what was forked off a workflow, the oldest first, as far as it was looked into."""
        self._learn_all()
        return self._forks(workflow_id)

    def family(self, workflow_id: str) -> Family:
        """Answer everything that a workflow is related to by forks, itself included."""
        is_cut = self._learn_all()
        members, forks, todo = [workflow_id], list[tuple[str, Fork]](), [workflow_id]
        while todo and len(members) < _FAMILY_MAX:
            name = todo.pop()
            mine = [(name, fork) for fork in self._forks(name)]
            learnt = self._of(name)
            if learnt.origin is not None:
                mine.append((learnt.origin.workflow_id, Fork(name, learnt.origin.point, learnt.created_at)))
            forks += [pair for pair in mine if pair not in forks]
            new = {one for parent, fork in mine for one in (parent, fork.workflow_id)} - set(members)
            members += sorted(new)
            todo += sorted(new)
        return Family(tuple(members), tuple(forks), is_cut or bool(todo))

    def _forks(self, workflow_id: str) -> list[Fork]:
        found = [
            Fork(name, learnt.origin.point, learnt.created_at)
            for name, learnt in list(self._learnt.items())
            if learnt.origin is not None and learnt.origin.workflow_id == workflow_id
        ]
        return sorted(found, key=lambda fork: (fork.created_at, fork.workflow_id))

    def _learn_all(self) -> bool:
        """Look into workflows that are new; answer whether there are more than were looked into."""
        with self._mutex:
            began = time.monotonic()
            if began >= self._learnt_until:
                names = set(self._kit.store.workflows())
                for gone in self._learnt.keys() - names:
                    self._learnt.pop(gone, None)
                unknown = sorted(names - self._learnt.keys())
                for name in unknown[:_LEARNT_AT_ONCE]:
                    self._of(name)
                self._is_cut = len(unknown) > _LEARNT_AT_ONCE
                took = time.monotonic() - began
                reused = min(10 * took, _REUSE_SECONDS_MAX) if took > _LONG_SECONDS and not unknown else 0.0
                self._learnt_until = time.monotonic() + reused
            return self._is_cut

    def _of(self, workflow_id: str) -> _Learnt:
        known = self._learnt.get(workflow_id)
        if known is not None:
            return known
        first = first_entry(self._kit.store, workflow_id)
        if first is None:
            # Its first checkpoint may come yet.
            return _Learnt(None, "")
        known = _Learnt(origin_in(self._kit, workflow_id, first), first.timestamp)
        self._learnt[workflow_id] = known
        return known
