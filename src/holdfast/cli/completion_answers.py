"""What a shell is answered that completes a line: quick, bounded, and quiet whatever goes wrong.

Ids out of a store are inserted into a command line: only those are offered that no shell reads anything into.
"""

from __future__ import annotations

import io
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from holdfast.cli.group import Commands, holdfast

if TYPE_CHECKING:
    from holdfast.ports import Store

    _TextType = click.ParamType[str]
else:
    # Only from click 8.4 on can it be told what a type is of.
    _TextType = click.ParamType

#: So many are offered, found in so long.
OFFERED_MAX = 200
_SECONDS_MAX = 0.5
_LOOKED_AT_MAX = 20_000

#: Names of arguments and options that are a workflow, and of those that may be a checkpoint of one.
_WORKFLOWS = frozenset({"workflow", "workflows", "workflow_id", "branch"})
_CHECKPOINTS = frozenset({"a", "b", "checkpoint", "checkpoints", "point"})
#: Of these commands the argument `name` is a checkpoint, or `target` a workflow.
_NAMED = {
    ("show", "name"): True,
    ("resume", "target"): True,
    ("release", "name"): True,
    ("drop", "name"): True,
}
#: Names of what is a file or a folder.
_FILES = frozenset({"file", "folder", "out", "path", "source"})
#: Of these the argument is a workflow in another store than the line names.
_ELSEWHERE = frozenset({"copy", "archive"})
_HARMLESS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+,=-]*")
#: Stores that can be asked at once: no network, no server that has to be started.
_QUICK = re.compile(r"(?:(?:file|sqlite):)?(?![a-z][a-z0-9+.-]+:).*", re.DOTALL)


class Answer(ShellComplete):
    """Finds what a line may be completed by, for any shell: the text up to the cursor is given."""

    name = "holdfast"
    source_template = ""

    def get_completion_args(self) -> tuple[list[str], str]:
        text = os.environ.get("COMP_TEXT", "")
        words = split_arg_string(text)
        is_begun = bool(text) and not text[-1].isspace()
        return (words[1:-1], words[-1]) if is_begun and len(words) > 1 else (words[1:], "")

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        command = _command_in(args)
        if isinstance(command, Commands) and args[-1:] in ([], [command.name]) and incomplete[:1] != "-":
            return [CompletionItem(name) for name in command.table if name.startswith(incomplete)]
        with _taught(command, args):
            return super().get_completions(args, incomplete)


def answers(shell: str) -> list[str]:
    """Answer the lines that a script is to be told; nothing where anything goes wrong."""
    finder = Answer(holdfast, {}, "holdfast", "COMP_TEXT")
    try:
        # What a command prints while its line is half read is no answer.
        with redirect_stdout(io.StringIO()):
            args, incomplete = finder.get_completion_args()
            items = finder.get_completions(args, incomplete)
    except Exception:
        # Whoever presses a key to complete a word did not ask for an error.
        return []
    cut = _kept_by_shell(incomplete) if shell == "bash" else 0
    return [
        ":file" if item.type in ("file", "dir") else str(item.value)[cut:] for item in items[:OFFERED_MAX]
    ]


def _kept_by_shell(incomplete: str) -> int:
    """Count the letters that bash leaves alone: it parts words at some characters, the @ among them."""
    breaks = os.environ.get("COMP_BREAKS", "")
    return max((incomplete.rfind(letter) + 1 for letter in breaks), default=0)


def _command_in(args: list[str]) -> click.Command:
    """Find the command that a line names, as far as it does."""
    command: click.Command = holdfast
    for word in args:
        found = command.get_command(click.Context(command), word) if isinstance(command, Commands) else None
        command = found or command
    return command


@contextmanager
def _taught(command: click.Command, args: list[str]) -> Iterator[None]:
    """Have a command complete what stands in a store, and names of files, for a while."""
    before = [(parameter, parameter.type) for parameter in command.params]
    for parameter in command.params:
        kind = None if command.name in _ELSEWHERE else _kind(command, parameter)
        if kind is not None:
            parameter.type = StoredName(_store_in(args), checkpoints=kind)
        elif parameter.name in _FILES:
            parameter.type = click.Path()
    try:
        yield
    finally:
        for parameter, kind_before in before:
            parameter.type = kind_before


def _kind(command: click.Command, parameter: click.Parameter) -> bool | None:
    """Tell whether a parameter may be a checkpoint, or is a workflow; None if it is neither."""
    if (command.name, parameter.name) in _NAMED:
        return _NAMED[command.name or "", parameter.name or ""]
    if parameter.name in _CHECKPOINTS and isinstance(parameter, click.Argument):
        return True
    return False if parameter.name in _WORKFLOWS else None


def _store_in(args: list[str]) -> str | None:
    """Find the store that a line names, the last one."""
    store = None
    for at, word in enumerate(args):
        if word == "--store" and args[at + 1 : at + 2]:
            store = args[at + 1]
        elif word.startswith("--store="):
            store = word.partition("=")[2]
    return store


class StoredName(_TextType):
    """A name that stands in a store."""

    name = "name"

    def __init__(self, store: str | None, *, checkpoints: bool) -> None:
        self._store = store
        self._with_checkpoints = checkpoints

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        return [CompletionItem(name) for name in islice(self._names(incomplete), OFFERED_MAX)]

    def _names(self, incomplete: str) -> Iterator[str]:
        workflow_id, at, _ = incomplete.rpartition("@")
        with _opened(self._store) as store:
            found = (
                _checkpoints(store, workflow_id)
                if at and self._with_checkpoints
                else sorted(_bounded(name for name in store.workflows() if name.startswith(incomplete)))
            )
            yield from (name for name in found if name.startswith(incomplete) and _HARMLESS.fullmatch(name))


@contextmanager
def _opened(url: str | None) -> Iterator[Store]:
    """Open a store for reading, if that can be done at once; nothing is told in its trail."""
    from holdfast import bootstrap
    from holdfast.config import Config

    config = Config.load({"store": url})
    if not _QUICK.fullmatch(config.store):
        raise LookupError(config.store)
    store = bootstrap.open_store(config, read_only=True, create=False)
    try:
        yield store
    finally:
        store.close()


def _checkpoints(store: Store, workflow_id: str) -> Iterator[str]:
    from holdfast.application.resolve import living

    yield f"{workflow_id}@latest"
    yield from (f"{workflow_id}@{entry.sequence}" for entry in _bounded(living(store, workflow_id)))


def _bounded(names: Iterable[Any]) -> Iterator[Any]:
    """Stop after a while, or after so many: what was found by then is offered."""
    end = time.monotonic() + _SECONDS_MAX
    for count, name in enumerate(names):
        if count >= _LOOKED_AT_MAX or time.monotonic() > end:
            return
        yield name
