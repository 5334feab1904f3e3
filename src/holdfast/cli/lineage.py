"""Workflows as trees: each below the one that it was forked from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.cli.output import counted
from holdfast.cli.trees import Branch

if TYPE_CHECKING:
    from holdfast.ports import Store


@dataclass(slots=True)
class Kin:
    """A workflow, the point it was forked at, and what was forked from it."""

    workflow_id: str
    point: str | None = None
    below: list[Kin] = field(default_factory=list)

    def all(self) -> Iterator[Kin]:
        """Yield it and everything below it, each before what is below."""
        waiting = [self]
        while waiting:
            kin = waiting.pop()
            yield kin
            waiting.extend(reversed(kin.below))

    def branch(self, store: Store) -> Branch:
        """Write it as a tree for people."""
        made = {id(kin): Branch(_text(store, kin)) for kin in self.all()}
        for kin in self.all():
            made[id(kin)].below.extend(made[id(one)] for one in kin.below)
        return made[id(self)]

    def fields(self, store: Store) -> dict[str, Any]:
        """Write it as a tree for programs."""
        made: dict[int, dict[str, Any]] = {
            id(kin): {
                "workflow_id": kin.workflow_id,
                "forked_from": kin.point,
                "checkpoints": _count(store, kin.workflow_id),
                "forks": [],
            }
            for kin in self.all()
        }
        for kin in self.all():
            made[id(kin)]["forks"].extend(made[id(one)] for one in kin.below)
        return made[id(self)]


def forest(store: Store) -> list[Kin]:
    """Put all workflows into trees, by name."""
    kin = _related(store)
    below = {id(one) for parent in kin.values() for one in parent.below}
    return [kin[name] for name in sorted(kin) if id(kin[name]) not in below]


def family(store: Store, workflow_id: str) -> Kin:
    """Answer the tree that a workflow is part of."""
    return next(root for root in forest(store) if any(kin.workflow_id == workflow_id for kin in root.all()))


def branch_of(store: Store, workflow_id: str) -> Kin:
    """Answer a workflow with everything that was forked from it, directly or not."""
    return _related(store).get(workflow_id) or Kin(workflow_id)


def _related(store: Store) -> dict[str, Kin]:
    from holdfast.application.forks import forks

    kin = {name: Kin(name) for name in store.workflows()}
    for fork in sorted(forks(store), key=lambda fork: fork.workflow_id):
        child, parent = kin.get(fork.workflow_id), kin.get(fork.origin)
        if child is None or child.point is not None:
            continue
        child.point = fork.point
        if parent is not None and all(one is not parent for one in child.all()):
            parent.below.append(child)
    return kin


def _text(store: Store, kin: Kin) -> str:
    origin = f" from {kin.point}" if kin.point else ""
    return f"{kin.workflow_id}{origin}: {counted(_count(store, kin.workflow_id), 'checkpoint')}"


def _count(store: Store, workflow_id: str) -> int:
    from holdfast.application.resolve import living

    return sum(1 for _ in living(store, workflow_id))
