"""`holdfast import langgraph-sqlite`: what LangGraph's SqliteSaver kept."""

from __future__ import annotations

from pathlib import Path

import click

from holdfast.cli.changing import Change
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.import_langgraph import bring_over, import_options


@click.command("langgraph-sqlite", cls=StoreCommand)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@import_options
def command(call: Call, file: Path, threads: tuple[str, ...], types: tuple[str, ...], change: Change) -> None:
    """Bring over checkpoints of LangGraph's SqliteSaver.

    FILE is only read. A thread T becomes the workflow langgraph/T; ids,
    parents, metadata and pending writes stay what they are.

    \b
    Example:
      holdfast import langgraph-sqlite checkpoints.db --dry-run
    """
    from holdfast.integrations.langgraph_import import sqlite_source

    bring_over(call, lambda classes: sqlite_source(file, classes), threads, types, change)
