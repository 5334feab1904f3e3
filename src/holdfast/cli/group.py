"""The command `holdfast`: its commands by name, loaded when called, and the options they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import click

from holdfast.cli.exits import Exit, Failure
from holdfast.cli.output import Output

HELP_WIDTH = 80

#: Module and summary of each command. The summaries stand here too, so that help loads no command.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "approve": ("approve", "Answer what a workflow waits for."),
    "audit": ("audit", "Look at the trail, verify it, sign it, hand it out."),
    "cancel": ("cancel", "End a running workflow for good."),
    "checkpoint": ("checkpoint", "Ask a running workflow for a checkpoint."),
    "config": ("config", "Show the settings, and where each comes from."),
    "copy": ("copying", "Copy workflows from one store to another."),
    "demo": ("demo", "Kill a team of agents twice and carry its work on."),
    "diff": ("diff", "Show what changed between two checkpoints."),
    "doctor": ("doctor", "Examine the store, its disk and this installation."),
    "erase": ("erase", "Erase a workflow's or a person's data for ever."),
    "fork": ("fork", "Start a new workflow from any point of another."),
    "hold": ("hold", "Keep something from being removed, whoever asks."),
    "import": ("importing", "Bring over what other systems kept."),
    "init": ("init", "Make a new, empty store."),
    "keys": ("keys", "Look after the keys of an encrypted store."),
    "list": ("listing", "List workflows, or the checkpoints of one."),
    "mcp": ("mcp", "Serve checkpoints to an agent over MCP."),
    "migrate": ("migrate", "Bring states to the version of the program."),
    "pause": ("pause", "Let a running workflow stop after what is at work."),
    "progress": ("progress", "Print the progress report of a workflow."),
    "prune": ("prune", "Remove checkpoints that need not be kept."),
    "quarantine": ("quarantine", "Look after what was found damaged and set aside."),
    "recover": ("recover", "Bring a workflow back after a crash."),
    "replay": ("replay", "Run the reducers again and compare with what is stored."),
    "resume": ("resume", "Go on with a workflow, or run a part of it again."),
    "run": ("run", "Run a workflow, and show how it goes on."),
    "session": ("session", "Pass work on from one session to the next."),
    "show": ("show", "Show one checkpoint: what it is, and its state."),
    "subject": ("subject", "Say whom a workflow is about, and give people theirs."),
    "validate": ("validate", "Check that checkpoints are what was committed."),
    "version": ("version", "Tell the versions of Holdfast and what it uses."),
}

_META = "holdfast."
#: No more names than these are compared to find out what a typing error meant.
_NAMES_COMPARED_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Call:
    """What one call of the command line was told by the options that every command takes."""

    #: The store that a flag names; without one the configuration does.
    store: str | None = None
    output: Output = field(default_factory=Output)

    @classmethod
    def of(cls, context: click.Context) -> Call:
        """Read the options given before and after the command; the later one wins."""
        given = {
            name.removeprefix(_META): value for name, value in context.meta.items() if name.startswith(_META)
        }
        output = Output(given.get("json", False), given.get("quiet", False), given.get("color", "auto"))
        return cls(given.get("store"), output)


def _remember(context: click.Context, option: click.Parameter, value: Any) -> None:
    """Keep what was given; an option left out after the command does not undo the one before it."""
    if value is not None and value is not False:
        context.meta[f"{_META}{option.name}"] = value


def _common_options() -> list[click.Parameter]:
    """Make the options that may stand before and after a command."""
    return [
        click.Option(
            ["--store"],
            metavar="URL",
            help="Folder or URL of the store. [env: HOLDFAST_STORE; default: .holdfast]",
            callback=_remember,
            expose_value=False,
        ),
        click.Option(
            ["--json"], is_flag=True, help="Print JSON, errors too.", callback=_remember, expose_value=False
        ),
        click.Option(
            ["--color"],
            type=click.Choice(["auto", "always", "never"]),
            help="When to use colour. [default: auto]",
            callback=_remember,
            expose_value=False,
        ),
        click.Option(
            ["--quiet", "-q"],
            is_flag=True,
            help="Print data only, no remarks.",
            callback=_remember,
            expose_value=False,
        ),
    ]


class StoreCommand(click.Command):
    """A command with the shared options after its own, whose function is given the `Call` first."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params.extend(_common_options())

    def invoke(self, context: click.Context) -> Any:
        assert self.callback is not None
        return context.invoke(self.callback, Call.of(context), **context.params)


class Commands(click.Group):
    """A group that knows its commands by name and imports one only to run it."""

    def __init__(self, *, table: Mapping[str, tuple[str, str]], **settings: Any) -> None:
        context_settings = {"terminal_width": HELP_WIDTH, "help_option_names": ["-h", "--help"]}
        super().__init__(**settings, context_settings=context_settings, no_args_is_help=True)
        self.table = table
        self.params[:0] = _common_options()

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        if not args and context.parent is not None:
            click.echo(context.get_help())
            context.exit(Exit.USAGE)
        return super().parse_args(context, args)

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.table:
            return None
        module = import_module(f"holdfast.cli.{self.table[name][0]}")
        found: click.Command = module.command
        return found

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in self.table and not name.startswith("-"):
            hint = did_you_mean(name, self.table) or f"See `{context.command_path} --help`."
            raise Failure("wrong_usage", Exit.USAGE, f"no such command: {name}", hint=hint)
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in self.table.items()])


def did_you_mean(typed: str, names: Iterable[str]) -> str:
    """Ask `Did you mean X?`, or nothing where no name is close."""
    from difflib import get_close_matches
    from itertools import islice

    close = get_close_matches(typed, list(islice(names, _NAMES_COMPARED_MAX)), n=3, cutoff=0.6)
    return f"Did you mean {' or '.join(close)}?" if close else ""


def _print_version(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from holdfast import __version__

        click.echo(f"holdfast {__version__}")
        context.exit()


holdfast = Commands(
    table=COMMANDS,
    name="holdfast",
    help="""Durable checkpoints for multi-agent workflows.

    \b
    Start with:
      holdfast demo
      holdfast --store .holdfast list
    """,
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            help="Print the version and stop.",
            callback=_print_version,
            expose_value=False,
        ),
    ],
)
