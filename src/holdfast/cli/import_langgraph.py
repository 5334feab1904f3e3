"""What the imports of LangGraph's checkpoints share: the bar, the classes that are named, the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from typing import Any

import click

from holdfast.cli.bars import bar
from holdfast.cli.changing import Change, changes
from holdfast.cli.group import Call
from holdfast.cli.opening import writing
from holdfast.cli.output import counted
from holdfast.cli.program_loading import load_class

#: Opens the source, given the classes that channels may hold.
Source = Callable[[Sequence[type]], AbstractContextManager[Any]]


def import_options(command: Any) -> Any:
    """Add the options that every import of LangGraph's has."""
    for option in (
        changes(),
        click.option(
            "--type", "types", metavar="MODULE:CLASS", multiple=True, help="A class that channels hold."
        ),
        click.option(
            "--thread", "threads", metavar="ID", multiple=True, help="Only this thread; may be repeated."
        ),
    ):
        command = option(command)
    return command


def bring_over(
    call: Call, source: Source, threads: Sequence[str], types: Sequence[str], change: Change
) -> None:
    """Carry an import out, and tell what was brought."""
    from holdfast.domain.plain import TypeRegistry
    from holdfast.integrations.langgraph import HoldfastSaver
    from holdfast.integrations.langgraph_import import bring

    classes = [load_class(name) for name in types]
    registry = TypeRegistry()
    for cls in classes:
        registry.register(cls)
    with source(classes) as saver, bar(call.output, "import") as show:

        def on_done(count: int, done: int) -> None:
            show(done, count)

        if change.dry_run:
            brought = bring(saver, None, threads, on_done)
        else:
            with writing(call, create=True, registry=registry, reason=change.reason) as service:
                brought = bring(saver, HoldfastSaver(service), threads, on_done)
    if call.output.as_json:
        call.output.data({**asdict(brought), "dry_run": change.dry_run})
        return
    what = f"{counted(brought.checkpoints, 'checkpoint')} of {counted(brought.threads, 'thread')}"
    told = "would be brought over" if change.dry_run else "brought over, each read back and compared"
    call.output.note(f"{what}, {counted(brought.writes, 'pending write')}: {told}.")
