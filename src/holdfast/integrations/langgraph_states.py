"""A checkpoint of LangGraph as a workflow's state, and back.

Channels of the root are the state's `context`; a list of messages that is called `messages` is its
`messages`. Channels of a subgraph are in `stage_states`, by namespace, until the root goes on. What LangGraph
keeps beside the channels is in `metadata`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.application.nodes import KEPT, Patch
from holdfast.application.stored_state import StoredState
from holdfast.domain.errors import CheckpointSchemaError
from holdfast.domain.state import WorkflowState
from holdfast.integrations.langgraph_given import GIVEN, START, kind_of, packed_members, with_ids
from holdfast.integrations.langgraph_names import Hides, told_name, ways_to_tell
from holdfast.integrations.langgraph_thread import NOTE, Put, Standing, Write
from holdfast.integrations.langgraph_told import Space, take_told, write_told
from holdfast.integrations.langgraph_values import Kind, Values, owned

ROOT = ""
MESSAGES = "messages"
#: Kept as one text, because all of it changes with each checkpoint; everything else is kept as it is called.
_NAMED = {"channel_versions": "versions", "versions_seen": "seen", "updated_channels": "updated"}
_CALLED = {short: name for name, short in _NAMED.items()}
#: Told by the event of a checkpoint or with its channels, and not kept in its state again.
_TOLD = frozenset({"channel_values", "ts", "id"})


@dataclass(frozen=True, slots=True)
class Drawn:
    """A state to record, and what the spaces of it are from then on."""

    state: WorkflowState
    spaces: dict[str, Space]


def draw(
    workflow_id: str,
    thread_id: str,
    ns: str,
    checkpoint: Mapping[str, Any],
    before: Standing,
    values: Values,
    *,
    is_hopeful: bool,
    is_on_top: bool,
    names: Collection[str],
    new_versions: Mapping[str, Any],
    hides: Hides,
) -> Drawn:
    """Make the state that holds a checkpoint.

    Args:
        before: what the newest state holds.
        is_hopeful: values are not looked at first; if they cannot be stored, draw it again without hope.
        names: channels that the checkpoint before has.
        is_on_top: the checkpoint follows the one that the newest state has of this namespace, so that
            channels of the same version are the same.
        hides: tells whether redaction hides a name.
    """
    told_before, key = before.spaces.get(ns), told_name(ns, hides)
    # What is called otherwise from now on is not where it was, and has to be said again.
    known = told_before if is_on_top and told_before and told_before.key == key else None
    encode = partial(values.hoped, known.kinds if known else {}) if is_hopeful else values.encode
    said, kept, kinds = _channels(checkpoint, known, names, new_versions, encode)
    given: Mapping[str, bytes] = {}
    if START in said:
        said[START], given = packed_members(said[START], kinds.get(START))
    held, table = _space(checkpoint, kinds, told_before.names if told_before else ())
    known_from_now = Space(checkpoint["id"], dict(checkpoint["channel_versions"]), kinds, table, key, given)
    spaces = {**_staying(before, ns), ns: known_from_now}
    others = [space.key for name, space in spaces.items() if name != ns]
    told: Any = Patch({NOTE: Patch({key: held}, others)}, ("framework", "thread_id"))
    if not before.sequence or not before.spaces:
        told = {"framework": "langgraph", "thread_id": thread_id, NOTE: {key: held}}
    state = WorkflowState(workflow_id=workflow_id, metadata=told)
    if ns == ROOT:
        _draw_root(state, said, kept, kinds, others)
    else:
        _draw_stage(state, key, said, kept, before, others, is_known=known is not None)
    return Drawn(state, spaces)


def checkpoint_in(stored: StoredState, put: Put, values: Values) -> dict[str, Any]:
    """Answer a checkpoint from the state that holds it."""
    ns = put.ns
    key, space = _held_of(stored, ns)
    told = take_told(space)
    checkpoint_id, kinds = told.pop("id"), told.pop("kinds")
    data = dict((stored.at("context") if ns == ROOT else stored.at("stage_states", key)) or {})
    if ns == ROOT and kinds.get(MESSAGES) == "messages":
        data[MESSAGES] = stored.at(MESSAGES)
    channels = {name: values.decode(data[name], kinds.get(name)) for name in put.names}
    return {
        **space,
        "id": checkpoint_id,
        **{_CALLED[key]: value for key, value in told.items()},
        "ts": put.ts,
        "channel_values": channels,
    }


def writes_in(stored: Callable[[], StoredState], put: Put, values: Values) -> list[tuple[str, str, Any]]:
    """Answer the writes on a checkpoint: task, channel and value, each value the caller's own.

    Args:
        stored: answers the state that holds the checkpoint, which is left as it is. It is asked for where a
            write says what the run was given, and nowhere else.
    """
    return [(write.task, write.channel, write_in(stored, put, write, values)) for write in put.ordered()]


def write_in(stored: Callable[[], StoredState], put: Put, write: Write, values: Values) -> Any:
    """Answer the value of a write; see `writes_in`.

    Raises:
        CheckpointSchemaError: it is what the run was given, and the checkpoint does not hold that.
    """
    if write.kind != GIVEN:
        return values.decode(owned(write.value), write.kind)
    state = stored()
    key, space = _held_of(state, put.ns)
    path = ("context",) if put.ns == ROOT else ("stage_states", key)
    kind = kind_of(take_told(dict(space))["kinds"].get(START), write.channel)
    value = state.at(*path, START, write.channel)
    try:
        given = with_ids(owned(value), write.value)
    except (TypeError, ValueError):
        value = None
    if value is None:
        raise CheckpointSchemaError(f"the checkpoint {put.id} does not hold what a write on it refers to")
    return values.decode(given, kind)


def _held_of(stored: StoredState, ns: str) -> tuple[str, Any]:
    """Answer what a state holds of a namespace, and what it is called there."""
    found = ((key, stored.at("metadata", NOTE, key)) for key in ways_to_tell(ns))
    return next((pair for pair in found if pair[1] is not None), (ns, {}))


def _channels(
    checkpoint: Mapping[str, Any],
    known: Space | None,
    names: Collection[str],
    new_versions: Mapping[str, Any],
    encode: Callable[[Any, str], tuple[Any, Kind]],
) -> tuple[dict[str, Any], list[str], dict[str, Any]]:
    """Answer the channels that are said, those that stay, and how to read all of them."""
    said: dict[str, Any] = {}
    kept: list[str] = []
    kinds: dict[str, Any] = {}
    versions = checkpoint["channel_versions"]
    for name, value in checkpoint["channel_values"].items():
        is_told = known is None or name in new_versions or name not in names or name not in versions
        if known is not None and not is_told and known.versions.get(name) == versions[name]:
            kept.append(name)
            kind = known.kinds.get(name)
        else:
            said[name], kind = encode(value, name)
        if kind is not None:
            kinds[name] = kind
    return said, kept, kinds


def _space(
    checkpoint: Mapping[str, Any], kinds: dict[str, Any], names: Sequence[str]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Answer what a state holds of a checkpoint beside its channels, and the names that stand in it."""
    parts: dict[str, Any] = {"id": checkpoint["id"], "kinds": kinds}
    space: dict[str, Any] = {}
    for key, value in checkpoint.items():
        if key in _NAMED:
            parts[_NAMED[key]] = value
        elif key not in _TOLD:
            space[key] = value
    told = write_told(parts, names)
    space |= told.fields()
    return space, told.names


def _staying(before: Standing, ns: str) -> dict[str, Space]:
    """Answer the spaces that stay: when the root goes on, what subgraphs did for one step is done."""
    if ns != ROOT:
        return before.spaces
    return {name: space for name, space in before.spaces.items() if ":" not in name}


def _draw_root(
    state: WorkflowState, said: dict[str, Any], kept: list[str], kinds: Mapping[str, Any], others: list[str]
) -> None:
    if kinds.get(MESSAGES) == "messages":
        state.messages = said.pop(MESSAGES, KEPT)
        kept = [name for name in kept if name != MESSAGES]
    # Also where it is empty: a field that comes and goes would move the others about.
    _assign(state, "context", Patch(said, kept))
    if others:
        _assign(state, "stage_states", Patch({}, others))


def _draw_stage(
    state: WorkflowState,
    key: str,
    said: dict[str, Any],
    kept: list[str],
    before: Standing,
    others: list[str],
    *,
    is_known: bool,
) -> None:
    own: Any = Patch(said, kept) if is_known else said
    _assign(state, "stage_states", Patch({key: own}, [name for name in others if name != ROOT]))
    root = before.spaces.get(ROOT)
    if root is not None:
        if root.kinds.get(MESSAGES) == "messages":
            _assign(state, MESSAGES, KEPT)
        _assign(state, "context", KEPT)


def _assign(state: WorkflowState, name: str, part: Patch) -> None:
    """Give a state a part that is not at hand as a whole."""
    setattr(state, name, part)
