"""What changed between the workflow that was begun and the one that goes on with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.domain.errors import GraphChangedError


def drift(before: Mapping[str, Any], now: Mapping[str, Any], done: frozenset[str]) -> tuple[str, ...]:
    """Tell in words what is different; nothing where the graph is the same.

    Args:
        before: structure of the graph as a checkpoint has it.
        now: that of the program.
        done: agents that have results.
    """
    if not before or before.get("fingerprint") == now.get("fingerprint"):
        return ()
    old, new = _agents(before), _agents(now)
    added = [name for name in new if name not in old]
    removed = [name for name in old if name not in new]
    moved = [name for name in new if name in old and old[name] != new[name]]
    told = [f"agent {name!r} is new: it is run now" for name in added]
    told += [f"agent {name!r} is gone: {_kept(name, done)}" for name in removed]
    told += [f"agent {name!r} stands elsewhere: {_kept(name, done)}" for name in moved]
    return tuple(told) or ("stages were renamed or reordered, and no agent is concerned",)


def check_drift(changes: tuple[str, ...], workflow_id: str, *, strict: bool) -> None:
    """Refuse to go on with a changed graph, if that was asked for.

    Raises:
        GraphChangedError: it changed.
    """
    if strict and changes:
        raise GraphChangedError(
            f"the workflow is not the one that was begun: {'; '.join(changes)}",
            place=workflow_id,
            hint="Run it with the program that began it, or without strict: what fits is kept.",
        )


def _agents(structure: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    return {
        agent["name"]: (stage["name"], stage["kind"], stage["layer"], tuple(agent["after"]))
        for stage in structure.get("stages", ())
        for agent in stage["agents"]
    }


def _kept(name: str, done: frozenset[str]) -> str:
    return "its results are kept" if name in done else "it has no results yet"
