"""Who is compared, in which environment, and with whom."""

from __future__ import annotations

from dataclasses import dataclass

FILES, SQLITE, POSTGRES = "files", "SQLite", "PostgreSQL"
SYNCED, UNSYNCED = "synced", "**not synced**"
CHAT = "chat"
_HERE = "benchmarks.compare.contenders"


@dataclass(frozen=True, slots=True)
class Lane:
    """One contender on one store."""

    name: str
    title: str
    store: str
    maker: str
    #: Of the environment that has its packages; None for the one that runs the driver.
    environment: str | None
    durability: str = SYNCED
    #: The only workload that it is measured on.
    only: str | None = None

    @property
    def is_ours(self) -> bool:
        return self.title.startswith("Holdfast")


def _savers(maker: str) -> str:
    return f"{_HERE}.langgraph_savers:{maker}"


LANES = (
    Lane("plain", "plain JSON + fsync + rename", FILES, f"{_HERE}.plain:Plain", None),
    Lane("holdfast-files", "Holdfast", FILES, f"{_HERE}.holdfast_store:HoldfastStore", "holdfast"),
    Lane(
        "agent-framework",
        "Agent Framework FileCheckpointStorage",
        FILES,
        f"{_HERE}.agent_framework:AgentFramework",
        "agent_framework",
        UNSYNCED,
    ),
    Lane("holdfast-sqlite", "Holdfast", SQLITE, f"{_HERE}.holdfast_store:HoldfastStore", "holdfast"),
    Lane("burr", "Burr SQLitePersister", SQLITE, f"{_HERE}.burr:Burr", "burr"),
    Lane("holdfast-postgres", "Holdfast", POSTGRES, f"{_HERE}.holdfast_store:HoldfastStore", "holdfast"),
    Lane("saver-files", "HoldfastSaver in LangGraph", FILES, _savers("holdfast"), "langgraph"),
    Lane("saver-sqlite", "HoldfastSaver in LangGraph", SQLITE, _savers("holdfast"), "langgraph"),
    Lane("sqlitesaver", "LangGraph SqliteSaver", SQLITE, _savers("sqlite"), "langgraph"),
    Lane(
        "sqlitesaver-delta",
        "LangGraph SqliteSaver, DeltaChannel",
        SQLITE,
        _savers("sqlite_delta"),
        "langgraph",
        only=CHAT,
    ),
    Lane("saver-postgres", "HoldfastSaver in LangGraph", POSTGRES, _savers("holdfast"), "langgraph"),
    Lane("postgressaver", "LangGraph PostgresSaver", POSTGRES, _savers("postgres"), "langgraph"),
    Lane(
        "postgressaver-delta",
        "LangGraph PostgresSaver, DeltaChannel",
        POSTGRES,
        _savers("postgres_delta"),
        "langgraph",
        only=CHAT,
    ),
    Lane(
        "langgraph-unsaved",
        "LangGraph without a checkpointer",
        "nothing",
        _savers("unsaved"),
        "langgraph",
        "not kept",
        only=CHAT,
    ),
    Lane(
        "durable-sqlite",
        "Holdfast durable steps",
        SQLITE,
        f"{_HERE}.holdfast_steps:HoldfastSteps",
        "holdfast",
    ),
    Lane("dbos-sqlite", "DBOS steps", SQLITE, f"{_HERE}.dbos:Dbos", "dbos"),
    Lane(
        "durable-postgres",
        "Holdfast durable steps",
        POSTGRES,
        f"{_HERE}.holdfast_steps:HoldfastSteps",
        "holdfast",
    ),
    Lane("dbos-postgres", "DBOS steps", POSTGRES, f"{_HERE}.dbos:Dbos", "dbos"),
)


def label(lane: Lane) -> str:
    """Name a contender, with its store where it has several."""
    is_alone = sum(one.title == lane.title for one in LANES) == 1
    return lane.title if is_alone else f"{lane.title}, {lane.store}"


#: Each peer beside what does the same with Holdfast on the same kind of store.
PAIRS = (
    ("saver-sqlite", "sqlitesaver"),
    ("saver-sqlite", "sqlitesaver-delta"),
    ("saver-postgres", "postgressaver"),
    ("saver-postgres", "postgressaver-delta"),
    ("durable-sqlite", "dbos-sqlite"),
    ("durable-postgres", "dbos-postgres"),
    ("holdfast-sqlite", "burr"),
    ("holdfast-files", "agent-framework"),
    ("holdfast-files", "plain"),
)
