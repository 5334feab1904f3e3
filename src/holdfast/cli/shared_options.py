"""The options that every command takes, before its name and after it."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

#: Before the names of what was given, among everything that a context remembers.
META = "holdfast."

OUTPUTS = ("table", "json", "jsonl", "csv")
COLORS = ("auto", "always", "never")
LOG_FORMATS = ("text", "json")
#: Variables that stand for a flag, and are no settings: the words that flags have are theirs as well.
VARIABLES = {
    "output": "HOLDFAST_OUTPUT",
    "color": "HOLDFAST_COLOR",
    "verbose": "HOLDFAST_VERBOSE",
    "log_format": "HOLDFAST_LOG_FORMAT",
    "no_input": "HOLDFAST_NO_INPUT",
    "local_time": "HOLDFAST_LOCAL_TIME",
    "request_id": "HOLDFAST_REQUEST_ID",
}


def _remember(context: click.Context, option: click.Parameter, value: Any) -> None:
    """Keep what was given; an option left out after the command does not undo the one before it."""
    if value == "" and option.name == "store":
        # Not the usual one: a variable of a shell was meant to name another.
        raise click.UsageError("--store is empty; name a store, or leave it out", context)
    if not value:
        return
    name = f"{META}{option.name}"
    # A variable is read after all flags of the line, and counts for less.
    is_variable = context.get_parameter_source(option.name or "") is ParameterSource.ENVIRONMENT
    if not (is_variable and name in context.meta):
        context.meta[name] = value


def _remember_json(context: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        context.meta[f"{META}output"] = "json"


def _option(*names: str, **settings: Any) -> click.Option:
    settings.setdefault("callback", _remember)
    return click.Option(list(names), expose_value=False, **settings)


def _often_used() -> list[click.Option]:
    return [
        _option(
            "--store",
            metavar="URL",
            help="Folder or URL of the store. [env: HOLDFAST_STORE; default: .holdfast]",
        ),
        _option("--json", is_flag=True, help="Print JSON, errors too.", callback=_remember_json),
        _option("--color", type=click.Choice(COLORS), help="When to use colour. [default: auto]"),
        _option("--quiet", "-q", is_flag=True, help="Print data only, no remarks."),
    ]


def _seldom_used() -> list[click.Option]:
    return [
        _option(
            "--output", "-o", type=click.Choice(OUTPUTS), help="How to print tables. [env: HOLDFAST_OUTPUT]"
        ),
        _option("--columns", metavar="A,B", help="Of tables, only these columns in this order."),
        _option("--config", metavar="FILE", help="Settings file. [env: HOLDFAST_CONFIG]"),
        _option("--profile", metavar="NAME", help="Its table [profile.NAME] wins. [env: HOLDFAST_PROFILE]"),
        _option("--verbose", "-v", count=True, help="Log what is done; twice: more of it."),
        _option("--log-format", type=click.Choice(LOG_FORMATS), help="How to log. [default: text]"),
        _option("--no-input", is_flag=True, help="Never ask; what needs an answer is refused."),
        _option("--local-time", is_flag=True, help="Times of tables in local time. [default: UTC]"),
        _option("--request-id", metavar="ID", help="Ties what is done together in the trail."),
    ]


def command_options(taken: set[str]) -> list[click.Parameter]:
    """Make the options of a command: help shows those that are used often, and all of them are taken.

    Args:
        taken: words that the command has a meaning of its own for. There the shared option with the same
            word stands before the command only.
    """
    seldom = _seldom_used()
    for option in seldom:
        option.hidden = True
    return [option for option in (*_often_used(), *seldom) if not taken.intersection(option.opts)]


def root_options() -> list[click.Parameter]:
    """Make the options of `holdfast` itself, all of them shown, each with its variable."""
    options: list[click.Parameter] = [*_often_used(), *_seldom_used()]
    for option in options:
        option.envvar = VARIABLES.get(option.name or "")
    return options
