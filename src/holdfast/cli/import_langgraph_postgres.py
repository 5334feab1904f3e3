"""`holdfast import langgraph-postgres`: what LangGraph's PostgresSaver kept."""

from __future__ import annotations

import click

from holdfast.cli.changing import Change
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.import_langgraph import bring_over, import_options


@click.command("langgraph-postgres", cls=StoreCommand)
@click.argument("url", metavar="URL")
@import_options
def command(call: Call, url: str, threads: tuple[str, ...], types: tuple[str, ...], change: Change) -> None:
    """Bring over checkpoints of LangGraph's PostgresSaver.

    URL is that of the database, which is only read. A thread T becomes the
    workflow langgraph/T; ids, parents, metadata and pending writes stay what
    they are.

    \b
    Example:
      holdfast import langgraph-postgres postgresql://host/agents --dry-run
    """
    from holdfast.integrations.langgraph_import import postgres_source

    bring_over(call, lambda classes: postgres_source(url, classes), threads, types, change)
