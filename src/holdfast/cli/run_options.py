"""What `holdfast run` and `holdfast resume` have in common: options, and the program that is run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from holdfast.cli.changing import Change, changes
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.run_inputs import read_pairs
from holdfast.cli.run_standing import begun_with, standing

if TYPE_CHECKING:
    from holdfast.cli.group import Call
    from holdfast.execution.options import RunOptions

#: Under this name the options of a run keep what was run, as a hint for whoever goes on.
PROGRAM = "program"

_OPTIONS = (
    click.option("--strict", is_flag=True, help="Refuse to go on if the graph of the workflow changed."),
    click.option("--no-wait", is_flag=True, help="End with 8 where nothing but an answer is missing."),
    click.option(
        "--lease-seconds",
        metavar="N",
        type=click.FloatRange(min=0, min_open=True),
        help="How long others wait if this machine dies. [default: 30]",
    ),
    click.option(
        "--config", "config", metavar="KEY=VALUE", multiple=True, help="Told to the agents; may be repeated."
    ),
    click.option(
        "--renamed", metavar="OLD=NEW", multiple=True, help="An agent has another name now; may be repeated."
    ),
    click.option("--events", is_flag=True, help="With --json: one line for each thing that happens."),
)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a run is asked for on the command line."""

    strict: bool
    no_wait: bool
    lease_seconds: float | None
    config: Sequence[str]
    events: bool
    renamed: Sequence[str] = ()
    change: Change = field(default_factory=Change)

    def check(self, call: Call) -> None:
        """Refuse what does not go together."""
        if self.events and not call.output.as_json:
            raise click.UsageError("--events needs --json")
        if PROGRAM in read_pairs(self.config, "--config"):
            raise click.UsageError(f"--config {PROGRAM}=: under this name the program itself is remembered")

    def options(self, program: str, begun_with: Mapping[str, Any]) -> RunOptions:
        """Answer the options of the run; what it was begun with stays, unless it is given again."""
        from holdfast.execution.options import LEASE_SECONDS, RunOptions

        return RunOptions(
            strict=self.strict,
            waits=not self.no_wait,
            lease_seconds=self.lease_seconds or LEASE_SECONDS,
            renamed={old: str(new) for old, new in read_pairs(self.renamed, "--renamed").items()},
            config={**begun_with, **read_pairs(self.config, "--config"), PROGRAM: program},
        )


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of a run."""
    given = changes()(command)
    for option in reversed(_OPTIONS):
        given = option(given)
    return given


def program_named(text: str | None, begun_with: Mapping[str, Any], place: str) -> str:
    """Answer the program that a flag or the configuration names.

    A store never decides what is imported: what it remembers is told, for a person to type.

    Raises:
        Failure: neither names one.
    """
    from holdfast.config import Config

    named = text or Config.load().program
    if named:
        return named
    known = begun_with.get(PROGRAM)
    begun = f"It was begun with {known}: give `--app {known}`" if known else "Give --app module:workflow"
    raise Failure(
        "wrong_usage",
        Exit.USAGE,
        "which program goes on with it is not said",
        place=place,
        hint=f"{begun}, or set program below [run] in holdfast.toml.",
    )


def resume_command(call: Call, workflow_id: str) -> str:
    """Write what goes on with a workflow, for a person to type, with the program that it was begun with."""
    from holdfast.config import Config, without_secrets

    words = ["holdfast", "resume", workflow_id]
    if not Config.load().program:
        words += ["--app", str(begun_with(standing(call, workflow_id)).get(PROGRAM) or "PROGRAM")]
    if call.store:
        words += ["--store", without_secrets(call.store)]
    return shlex.join(words)
