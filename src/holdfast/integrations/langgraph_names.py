"""Names of LangGraph's in a store, told so that redaction does not take them for the names of secrets.

A node may be called `token`, and so is the namespace of a subgraph on it, or `token:` and a task's id. Behind
such a name everything is hidden, and a thread without what is told of a namespace could not go on. What the
channels hold stands behind their names as ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: Ends a name that is told otherwise than it is. No namespace of LangGraph's has a colon after a bar, and no
#: name of a secret ends so.
_MARK = "|:name"
#: Members of a checkpoint's metadata that have names as keys: of namespaces, of channels.
_KEYED = ("parents", "counters_since_delta_snapshot")

#: Tells whether redaction hides a name, or what stands behind it.
Hides = Callable[[str], bool]


def told_name(name: str, hides: Hides) -> str:
    """Answer how a name is told: as it is, unless redaction would hide it or what stands behind it."""
    is_itself = not name or not (name.endswith(_MARK) or hides(name))
    return name if is_itself else _marked(name)


def read_name(told: str) -> str:
    """Answer the name that was told."""
    return told.removesuffix(_MARK).replace("|:", ":") if told.endswith(_MARK) else told


def ways_to_tell(name: str) -> tuple[str, ...]:
    """Answer how a name may have been told, what is to be looked for first at the beginning."""
    if not name:
        return (name,)
    # One that ends as marked ones do was told as it is only before there were any.
    return (_marked(name), name) if name.endswith(_MARK) else (name, _marked(name))


def told_event(told: dict[str, Any], hides: Hides) -> dict[str, Any]:
    """Answer what an event tells of a checkpoint, with the names in it as they are told."""
    return _with_names(told, lambda name: told_name(name, hides))


def read_event(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Answer what an event told, with the names in it as they are."""
    return _with_names(told, read_name)


def _marked(name: str) -> str:
    # A colon behind a name would make a value of what follows it.
    return name.replace(":", "|:") + _MARK


def _with_names(told: Any, change: Callable[[str], str]) -> Any:
    """Change the names in what an event tells; where there are none, it is answered as it is."""
    changed: dict[str, Any] = {"ns": change(told["ns"])} if told.get("ns") else {}
    metadata = told.get("metadata") or {}
    keyed = {key: metadata[key] for key in _KEYED if type(metadata.get(key)) is dict and metadata[key]}
    if keyed:
        named = {
            key: {change(name): item for name, item in members.items()} for key, members in keyed.items()
        }
        changed["metadata"] = {**metadata, **named}
    return {**told, **changed} if changed else told
