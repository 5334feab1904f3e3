"""What the imports of LangGraph's checkpoints share: the bar, the classes that are named, the result."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from typing import Any

import click

from holdfast.cli.group import Call
from holdfast.cli.opening import writing
from holdfast.cli.output import Output, counted
from holdfast.cli.program_loading import load_class

#: Opens the source, given the classes that channels may hold.
Source = Callable[[Sequence[type]], AbstractContextManager[Any]]


def import_options(command: Any) -> Any:
    """Add the options that every import of LangGraph's has."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Count what would be brought over, and change nothing."),
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
    call: Call, source: Source, threads: Sequence[str], types: Sequence[str], *, dry_run: bool
) -> None:
    """Carry an import out, and tell what was brought."""
    from holdfast.domain.plain import TypeRegistry
    from holdfast.integrations.langgraph import HoldfastSaver
    from holdfast.integrations.langgraph_import import bring

    classes = [load_class(name) for name in types]
    registry = TypeRegistry()
    for cls in classes:
        registry.register(cls)
    with source(classes) as saver, _bar(call.output) as on_done:
        if dry_run:
            brought = bring(saver, None, threads, on_done)
        else:
            with writing(call, create=True, registry=registry) as service:
                brought = bring(saver, HoldfastSaver(service), threads, on_done)
    if call.output.as_json:
        call.output.data({**asdict(brought), "dry_run": dry_run})
        return
    what = f"{counted(brought.checkpoints, 'checkpoint')} of {counted(brought.threads, 'thread')}"
    told = "would be brought over" if dry_run else "brought over, each read back and compared"
    call.output.note(f"{what}, {counted(brought.writes, 'pending write')}: {told}.")


@contextmanager
def _bar(output: Output) -> Iterator[Callable[[int, int], None]]:
    """Show how far it is, on a terminal."""
    if output.quiet or output.as_json or not sys.stderr.isatty():
        yield lambda count, done: None
        return
    with click.progressbar(length=1, label="import", file=sys.stderr) as bar:

        def show(count: int, done: int) -> None:
            bar.length = count
            bar.update(done - bar.pos)

        yield show
