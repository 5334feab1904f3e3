"""What changed between the workflow that was begun and the one that goes on with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count
from typing import Any

from holdfast.domain.errors import GraphChangedError
from holdfast.domain.state import WorkflowState


def drift(
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    done: frozenset[str],
    renamed: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Tell in words what is different; nothing where the graph is the same.

    Args:
        before: structure of the graph as a checkpoint has it.
        now: that of the program.
        done: agents that have results, by any of their names.
        renamed: names of before, with those of now.
    """
    # A graph without a fingerprint is none that a run recorded: an application may keep its own there.
    if before.get("fingerprint") is None:
        return ()
    known = renamed or {}
    shapes = _shapes(before, now, known)
    if before["fingerprint"] == now.get("fingerprint"):
        return shapes
    old, new = _agents(before, known), _agents(now)
    added = [name for name in new if name not in old]
    removed = [name for name in old if name not in new]
    called = [(was, name) for was, name in known.items() if name in new and was in _agents(before)]
    kept = done | {name for was, name in called if was in done}
    moved = [name for name in new if name in old and old[name] != new[name]]
    told = [f"agent {name!r} is new: it is run now" for name in added]
    told += [f"agent {was!r} is called {name!r} now: {_kept(name, kept)}" for was, name in called]
    told += [f"agent {name!r} is gone: {_kept(name, kept)}" for name in removed]
    told += [f"agent {name!r} stands elsewhere: {_kept(name, kept)}" for name in moved]
    if added and removed:
        told.append(
            "if one of them was only renamed, say so (`renamed`, `--renamed old=new`): its results are kept"
        )
    found = (*told, *shapes)
    return found or ("stages were renamed or reordered, and no agent is concerned",)


def news(fields: Mapping[str, Any], renamed: Mapping[str, str], agents: Collection[str]) -> dict[str, str]:
    """Answer what is said of names for the first time, and of agents that there are."""
    known = _known_names(fields)
    return {was: name for was, name in renamed.items() if known.get(was) != name and name in agents}


def renames(
    fields: Mapping[str, Any], more: Mapping[str, str], agents: Collection[str] = ()
) -> dict[str, str]:
    """Answer the names that steps are recorded under, with what those agents are called now.

    Args:
        fields: the state, which knows what was said before.
        more: names of agents of before, with those of now.
        agents: those of now; one that is new under the name of another of before is recorded under one more.
    """
    known = _known_names(fields)
    names = dict(known)
    for was, now in more.items():
        held = [one for one, name in known.items() if name == was]
        names |= dict.fromkeys(held, now)
        if not held or was not in known:
            names[was] = now
    for agent in agents:
        if names.get(agent, agent) != agent and agent not in names.values():
            names[next(free for number in count(2) if (free := f"{agent}~{number}") not in names)] = agent
    return names


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


def check_owner(state: WorkflowState, name: str) -> None:
    """Refuse a run of something else: it would be told as this one's, or gone on with as if it were.

    Raises:
        GraphChangedError: the id belongs to another workflow, or to a durable function.
    """
    owner = owner_of(state)
    if owner not in (None, name):
        raise GraphChangedError(
            f"the id belongs to {owner!r}, and not to the workflow {name!r}",
            place=state.workflow_id,
            hint="Give the run another id; a workflow that was renamed its old name.",
        )


def owner_of(state: WorkflowState) -> Any:
    """Name the workflow or the durable function that a state is of; None if it is of neither."""
    before = state.dag_structure
    # As with drift: what has no fingerprint is none that a run recorded.
    return before.get("workflow") if before.get("fingerprint") else state.metadata.get("function")


def _agents(
    structure: Mapping[str, Any], renamed: Mapping[str, str] | None = None
) -> dict[str, tuple[Any, ...]]:
    """Tell where each agent stands; what was renamed since goes by its new name everywhere."""
    known = renamed or {}

    def called(name: str) -> str:
        return known.get(name, name)

    return {
        called(agent["name"]): (
            # An agent on its own has a stage of its name.
            called(stage["name"]),
            stage["kind"],
            stage["layer"],
            tuple(map(called, agent["after"])),
        )
        for stage in structure.get("stages", ())
        for agent in stage["agents"]
    }


def _known_names(fields: Mapping[str, Any]) -> Mapping[str, str]:
    known: Mapping[str, str] = fields.get("metadata", {}).get("renamed", {})
    return known


def _shapes(before: Mapping[str, Any], now: Mapping[str, Any], renamed: Mapping[str, str]) -> tuple[str, ...]:
    """Tell who runs for items now or no more, and which loops have another limit; older runs do not say."""
    if "each" not in before or "limits" not in before:
        return ()
    old, new = _agents(before, renamed), _agents(now)
    were, are = {renamed.get(name, name) for name in before["each"]}, set(now["each"])
    told = [
        f"agent {name!r} runs {'for several items' if name in are else 'for no items'} now: it is run so, "
        "and what it answered otherwise does not count"
        for name in new
        if name in old and (name in were) != (name in are)
    ]
    limits = before["limits"]
    told += [
        f"loop {name!r} has {limit} rounds at most now, and had {limits[name]}"
        for name, limit in now["limits"].items()
        if limits.get(name, limit) != limit
    ]
    return tuple(told)


def _kept(name: str, done: frozenset[str]) -> str:
    return "its results are kept" if name in done else "it has no results yet"
