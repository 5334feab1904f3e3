"""Stores of every kind for the saver, checkpoints to put into them, and ways to look at what came back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata, CheckpointTuple
from langgraph.checkpoint.base.id import uuid6

from holdfast.integrations.langgraph import HoldfastSaver
from tests.adapters.postgres import server

#: Stores that a test may have for nothing, and all of them.
LOCAL = ("memory", "file", "sqlite")
KINDS = (*LOCAL, "postgres")
#: Stores that outlive the process.
LASTING = ("file", "sqlite", "postgres")


def url_of(kind: str, folder: Path) -> str:
    """Name a store that nobody has used yet, in a folder where it needs one."""
    if kind == "postgres":
        return server.url(lock_seconds="30", reconnect_seconds="60")
    return {"memory": "memory:", "file": f"file:{folder}/store", "sqlite": f"sqlite:{folder}/store.db"}[kind]


def config_of(thread_id: str, ns: str = "", checkpoint_id: str | None = None) -> RunnableConfig:
    """Name a thread, a namespace in it, and perhaps a checkpoint."""
    named = {"checkpoint_id": checkpoint_id} if checkpoint_id else {}
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns, **named}}


def checkpoint_of(channels: dict[str, Any], version: int = 1, **more: Any) -> Checkpoint:
    """Make a checkpoint of some channels, all of one version, with an id above all before it."""
    made: Any = {
        "v": 4,
        "id": str(uuid6(clock_seq=-2)),
        "ts": "2026-01-11T10:00:00+00:00",
        "channel_values": channels,
        "channel_versions": dict.fromkeys(channels, version),
        "versions_seen": {},
        "updated_channels": sorted(channels),
    }
    made.update(more)
    return made


def put(
    saver: HoldfastSaver,
    config: RunnableConfig,
    channels: dict[str, Any],
    version: int = 1,
    *,
    metadata: dict[str, Any] | None = None,
    **more: Any,
) -> RunnableConfig:
    """Put a checkpoint of which every channel is new; answer where it is."""
    checkpoint = checkpoint_of(channels, version, **more)
    told: Any = {"source": "loop", "step": version, "parents": {}, **(metadata or {})}
    return saver.put(config, checkpoint, told, checkpoint["channel_versions"])


def metadata_of(step: int, **more: Any) -> CheckpointMetadata:
    """Say what LangGraph says of a step."""
    told: Any = {"source": "loop", "step": step, "parents": {}, **more}
    return told


def got(saver: HoldfastSaver, config: RunnableConfig) -> CheckpointTuple:
    """Answer a checkpoint that must be there."""
    found = saver.get_tuple(config)
    assert found is not None
    return found


def channels(saver: HoldfastSaver, config: RunnableConfig) -> dict[str, Any]:
    """Answer the channels of a checkpoint that must be there."""
    return got(saver, config).checkpoint["channel_values"]


def id_of(config: RunnableConfig) -> str:
    """Answer which checkpoint a config names."""
    return str(config["configurable"]["checkpoint_id"])


def stored_bytes(folder: Path) -> int:
    """Count what a folder's files take."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
