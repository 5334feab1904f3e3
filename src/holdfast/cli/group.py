"""The command `holdfast`: its commands by name, loaded when called, and the options they share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import click

from holdfast.cli.exits import Exit, Failure
from holdfast.cli.output import Output
from holdfast.cli.shared_options import META, command_options, root_options
from holdfast.cli.surroundings import Surroundings
from holdfast.domain.errors import StoreNotFoundError

HELP_WIDTH = 80

#: Module and summary of each command. The summaries stand here too, so that help loads no command.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "approve": ("approve", "Answer what a workflow waits for."),
    "audit": ("audit", "Look at the trail, verify it, sign it, hand it out."),
    "cancel": ("cancel", "End a running workflow for good."),
    "checkpoint": ("checkpoint", "Ask a running workflow for a checkpoint."),
    "completion": ("completion", "Print what completes commands in your shell."),
    "config": ("config", "Show the settings, and where each comes from."),
    "copy": ("copying", "Copy workflows from one store to another."),
    "demo": ("demo", "Kill a team of agents twice and carry its work on."),
    "diff": ("diff", "Show what changed between two checkpoints."),
    "doctor": ("doctor", "Examine the store, its disk and this installation."),
    "erase": ("erase", "Erase a workflow's or a person's data for ever."),
    "events": ("events", "Print the events of a workflow, and follow them."),
    "export": ("export", "Write workflows into one file that can be taken along."),
    "fork": ("fork", "Start a new workflow from any point of another."),
    "hold": ("hold", "Keep something from being removed, whoever asks."),
    "import": ("importing", "Bring over what other systems kept."),
    "init": ("init", "Make a new, empty store."),
    "keys": ("keys", "Look after the keys of an encrypted store."),
    "list": ("listing", "List workflows, or the checkpoints of one."),
    "mcp": ("mcp", "Serve checkpoints to an agent over MCP."),
    "migrate": ("migrate", "Bring states to the version of the program."),
    "pause": ("pause", "Let a running workflow stop after what is at work."),
    "prune": ("prune", "Remove checkpoints that need not be kept."),
    "quarantine": ("quarantine", "Look after what was found damaged and set aside."),
    "recover": ("recover", "Bring a workflow back after a crash."),
    "replay": ("replay", "Run the reducers again and compare with what is stored."),
    "report": ("report", "Tell people how a workflow went: Markdown, HTML, JSON."),
    "resume": ("resume", "Go on with a workflow, or run a part of it again."),
    "reveal": ("reveal", "Show what is masked in a state, and tell why."),
    "run": ("run", "Run a workflow, and show how it goes on."),
    "serve": ("serve", "Serve the HTTP API and the dashboard."),
    "session": ("session", "Pass work on from one session to the next."),
    "show": ("show", "Show one checkpoint: what it is, and its state."),
    "stats": ("stats", "Count, forecast, and find what is slow or fails."),
    "subject": ("subject", "Say whom a workflow is about, and give people theirs."),
    "token": ("token", "Make and revoke the tokens of the HTTP API."),
    "validate": ("validate", "Check that checkpoints are what was committed."),
    "version": ("version", "Tell the versions of Holdfast and what it uses."),
    "watch": ("watch", "Follow workflows while they run."),
}

#: No more names than these are compared to find out what a typing error meant.
_NAMES_COMPARED_MAX = 10_000
_NAMES_MEANT_MAX = 3
_EPILOG = "`holdfast --help` shows more options, which every command takes."


@dataclass(frozen=True, slots=True)
class Call:
    """What one call of the command line was told by the options that every command takes."""

    #: The store that a flag names; without one the configuration does.
    store: str | None = None
    output: Output = field(default_factory=Output)
    surroundings: Surroundings = field(default_factory=Surroundings)

    @classmethod
    def of(cls, context: click.Context) -> Call:
        """Read the options given before and after the command; the later one wins."""
        given = {
            name.removeprefix(META): value for name, value in context.meta.items() if name.startswith(META)
        }
        layout = given.get("output", "table")
        output = Output(
            as_json=layout == "json",
            quiet=given.get("quiet", False),
            color=given.get("color", "auto"),
            layout=layout,
            columns=_column_names(given.get("columns", "")),
            is_local_time=given.get("local_time", False),
            no_input=given.get("no_input", False),
        )
        names = ("config", "profile", "verbose", "log_format", "request_id")
        return cls(
            given.get("store"), output, Surroundings(**{name: given[name] for name in names if name in given})
        )


def _column_names(text: str) -> tuple[str, ...]:
    return tuple(name.strip().lower() for name in text.split(",") if name.strip())


class StoreCommand(click.Command):
    """A command with the shared options after its own, whose function is given the `Call` first."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **{"epilog": _EPILOG, **settings})
        words = {word for option in self.params if isinstance(option, click.Option) for word in option.opts}
        self.params.extend(command_options(words))

    def invoke(self, context: click.Context) -> Any:
        assert self.callback is not None
        call = Call.of(context)
        with call.surroundings.entered(context.command_path):
            try:
                return context.invoke(self.callback, call, **context.params)
            except StoreNotFoundError as error:
                hint = _where_to_look(call.store, error.place) or error.hint
                raise StoreNotFoundError(error.message, place=error.place, hint=hint) from error


class Commands(click.Group):
    """A group that knows its commands by name and imports one only to run it."""

    def __init__(
        self, *, table: Mapping[str, tuple[str, str]], is_root: bool = False, **settings: Any
    ) -> None:
        context_settings = {"terminal_width": HELP_WIDTH, "help_option_names": ["-h", "--help"]}
        super().__init__(**settings, context_settings=context_settings, no_args_is_help=True)
        self.table = table
        self.params[:0] = root_options() if is_root else command_options(set())

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
    """Ask `Did you mean X?`, or nothing where no name is close; one that differs in case only is meant."""
    from difflib import get_close_matches
    from itertools import islice

    others = [name for name in islice(names, _NAMES_COMPARED_MAX) if name != typed]
    wanted = typed.casefold()
    close = [name for name in others if name.casefold() == wanted][:_NAMES_MEANT_MAX]
    close = close or get_close_matches(typed, others, n=_NAMES_MEANT_MAX, cutoff=0.6)
    if not close:
        folded = {name.casefold(): name for name in others}
        near = get_close_matches(wanted, folded, n=_NAMES_MEANT_MAX, cutoff=0.6)
        close = [folded[name] for name in near]
    return f"Did you mean {' or '.join(close)}?" if close else ""


def _where_to_look(flag: str | None, place: str) -> str:
    """Say who named a place without a store, where that was no flag; or that there is one in the folder."""
    inside = os.path.join(place, ".holdfast")
    if os.path.isfile(os.path.join(inside, "holdfast.json")):
        return f"There is one in it: {inside}."
    if flag is not None:
        return ""
    from holdfast.config import Config
    from holdfast.config_sources import Source

    given = Config.traced()[1].get("store")
    if given is None or os.path.abspath(str(given.value).partition(":")[2] or str(given.value)) != place:
        return ""
    who = given.key if given.source is Source.ENVIRONMENT else f"{given.key} in {given.place}"
    return f"{who} names this place. Correct it, or make a store here with `holdfast init`."


def _print_version(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from holdfast import __version__

        click.echo(f"holdfast {__version__}")
        context.exit()


holdfast = Commands(
    table=COMMANDS,
    is_root=True,
    name="holdfast",
    help="""Durable checkpoints for multi-agent workflows.

    \b
    Start with:
      holdfast demo --store kelp
      holdfast list --store kelp
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
