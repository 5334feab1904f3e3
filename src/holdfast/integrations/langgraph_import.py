"""Bringing over what LangGraph's own savers kept, checkpoint by checkpoint, each read back and compared."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.domain.errors import CheckpointCorruptError, CheckpointReadError, UnsupportedTypeError
from holdfast.integrations.framework import framework
from holdfast.integrations.langgraph import HoldfastSaver

with framework("langgraph-checkpoint", "4.3", "4.4", extra="langgraph"):
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
    from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

#: Told after each checkpoint how many there are, and how many are done.
OnDone = Callable[[int, int], None]
_TASK_PATHS = """
select 1 from pg_attribute
where attrelid = 'checkpoint_writes'::regclass and attname = 'task_path' and not attisdropped
"""
#: Older databases have none, and the saver of today asks for them. The view stands before the table for this
#: connection alone, and is gone with it: nothing of the source is changed.
_WITHOUT_TASK_PATHS = """
create temporary view checkpoint_writes as select *, '' as task_path from checkpoint_writes
"""
_BLOCKED = frozenset({"msgpack_blocked", "msgpack_method_blocked"})


@dataclass(frozen=True, slots=True)
class Brought:
    """What an import brought over, or would; what was there already counts too."""

    threads: int
    checkpoints: int
    writes: int


@contextmanager
def sqlite_source(path: Path, types: Collection[type] = ()) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open a copy of a SqliteSaver's file; the file itself is only read.

    Raises:
        CheckpointReadError: there is no such file, or it is none of SqliteSaver's.
    """
    with framework("langgraph-checkpoint-sqlite", "3.1", "4", extra="langgraph-import"):
        from langgraph.checkpoint.sqlite import SqliteSaver
    with tempfile.TemporaryDirectory() as folder, closing(_copied(path, Path(folder) / "copy.db")) as copy:
        yield SqliteSaver(copy, serde=_strict(types))


@contextmanager
def postgres_source(url: str, types: Collection[type] = ()) -> Iterator[BaseCheckpointSaver[Any]]:
    """Open the database of a PostgresSaver for reading.

    Raises:
        CheckpointReadError: it cannot be reached, or holds nothing of PostgresSaver's.
    """
    with framework("langgraph-checkpoint-postgres", "3.2", "4", extra="langgraph-import"):
        import psycopg
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg.rows import dict_row
    try:
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
            connection.execute("select 1 from checkpoints limit 1")
            if not connection.execute(_TASK_PATHS).fetchone():
                connection.execute(_WITHOUT_TASK_PATHS)
            connection.execute("set default_transaction_read_only = on")
            yield PostgresSaver(connection, serde=_strict(types))
    except psycopg.Error as problem:
        raise _unread("the database", problem) from problem


def bring(
    source: BaseCheckpointSaver[Any],
    target: HoldfastSaver | None,
    threads: Collection[str] = (),
    on_done: OnDone = lambda count, done: None,
) -> Brought:
    """Bring checkpoints over, those of some threads or all; called again it goes on.

    Args:
        target: None counts only.

    Raises:
        UnsupportedTypeError: a channel holds an object of a class that was not named.
        CheckpointCorruptError: what was read back is not what was brought.
    """
    # As they came about, of all namespaces: subgraphs leave the state when the root goes on.
    places = sorted(_places(source, threads), key=lambda place: (place[0][0], place[0][2], place[0][1]))
    writes = 0
    for done, (_, config) in enumerate(places, start=1):
        found = source.get_tuple(config)
        assert found is not None
        writes += len(found.pending_writes or ())
        if target is not None:
            _bring_one(found, target)
        on_done(len(places), done)
    return Brought(len({place[0][0] for place in places}), len(places), writes)


def _places(
    source: BaseCheckpointSaver[Any], threads: Collection[str]
) -> Iterator[tuple[tuple[str, str, str], Any]]:
    """Answer what there is, by thread, namespace and id, and how to ask for it."""
    with _complaining():
        for found in source.list(None):
            conf = found.config["configurable"]
            key = conf["thread_id"], conf.get("checkpoint_ns", ""), conf["checkpoint_id"]
            if not threads or key[0] in threads:
                yield key, found.config


def _bring_one(found: CheckpointTuple, target: HoldfastSaver) -> None:
    conf = found.config["configurable"]
    place = {"thread_id": conf["thread_id"], "checkpoint_ns": conf.get("checkpoint_ns", "")}
    parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
    above: Any = {"configurable": {**place, **({"checkpoint_id": parent} if parent else {})}}
    stored = target.put(above, found.checkpoint, found.metadata, found.checkpoint["channel_versions"])
    tasks: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in found.pending_writes or ():
        tasks.setdefault(task, []).append((channel, value))
    for at, (task, writes) in enumerate(tasks.items()):
        # In the order in which they were: the path they were sorted by is not told.
        target.put_writes(stored, writes, task, f"imported {at:06}")
    _compare(found, target.get_tuple(stored))


def _compare(found: CheckpointTuple, stored: CheckpointTuple | None) -> None:
    """Refuse to go on where something is not what it was."""
    if stored is not None:
        same = (
            _plain(stored.checkpoint) == _plain(found.checkpoint)
            and _plain(stored.metadata) == _plain(found.metadata)
            and (stored.pending_writes or []) == (found.pending_writes or [])
        )
        if same:
            return
    place = found.config["configurable"]
    raise CheckpointCorruptError(
        "what was brought over is not what it was",
        place=f"thread {place['thread_id']}, checkpoint {place['checkpoint_id']}",
        hint="Import again; if it stays so, tell us: the source is as it was.",
    )


def _plain(told: Any) -> dict[str, Any]:
    """Leave out what older versions wrote and newer ones drop: no sends at all, and writes told twice."""
    fields = dict(told or {})
    fields.pop("writes", None)
    if not fields.get("pending_sends"):
        fields.pop("pending_sends", None)
    return fields


def _copied(path: Path, copy: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise CheckpointReadError("there is no such file", place=str(path))
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as original:
            original.execute("select 1 from checkpoints limit 1")
            copied = sqlite3.connect(copy, check_same_thread=False)
            original.backup(copied)
            return copied
    except sqlite3.Error as problem:
        raise _unread(str(path), problem) from problem


def _unread(place: str, problem: Exception) -> CheckpointReadError:
    return CheckpointReadError(
        f"this holds no checkpoints of LangGraph's that can be read ({str(problem).strip()})", place=place
    )


def _strict(types: Collection[type]) -> JsonPlusSerializer:
    """Let nothing be made but what is known to be harmless, and what was named."""
    return JsonPlusSerializer(
        allowed_msgpack_modules=[(cls.__module__, cls.__name__) for cls in types] or None
    )


@contextmanager
def _complaining() -> Iterator[None]:
    """Raise for what the serializer would only warn of: an object that comes back as something else."""
    blocked: list[SerdeEvent] = []

    def listen(event: SerdeEvent) -> None:
        if event["kind"] in _BLOCKED:
            blocked.append(event)

    stop = register_serde_event_listener(listen)
    try:
        yield
    finally:
        stop()
    if blocked:
        name = f"{blocked[0]['module']}:{blocked[0]['name']}"
        raise UnsupportedTypeError(
            f"a channel holds an object of {name}", hint=f"If that class is yours, say so: --type {name}."
        )
