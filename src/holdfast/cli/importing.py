"""`holdfast import`: take in archives, and bring over what other systems kept."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.cli.group import Commands

IMPORT_COMMANDS: Mapping[str, tuple[str, str]] = {
    "archive": ("import_archive", "Take in what `holdfast export` wrote."),
    "langgraph-postgres": (
        "import_langgraph_postgres",
        "Bring over checkpoints of LangGraph's PostgresSaver.",
    ),
    "langgraph-sqlite": ("import_langgraph_sqlite", "Bring over checkpoints of LangGraph's SqliteSaver."),
}

command = Commands(
    table=IMPORT_COMMANDS,
    name="import",
    help="""Bring over what other systems kept.

    The source is only read. Each checkpoint is read back from the store and
    compared with what it was. Called again, an import goes on where it was
    interrupted and adds what is new.

    \b
    Example:
      holdfast import langgraph-sqlite checkpoints.db --store .holdfast
    """,
)
