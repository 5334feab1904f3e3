"""How a workflow is to be recovered, as the options of `holdfast recover` say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from holdfast.cli.recover_exec import command_words

if TYPE_CHECKING:
    from holdfast.application.app import App

MODES = {"latest": "latest", "full": "full", "point-in-time": "point_in_time"}


@dataclass(frozen=True, slots=True)
class Order:
    """What was asked for beside the workflow; what means nothing without one is all of it."""

    mode: str | None = None
    target: int | None = None
    app: str | None = None
    handler: str | None = None
    no_resume: bool = False
    skip_validation: bool = False
    take_over: bool = False
    allow_repeat_effects: bool = False
    checkpoint: bool | None = None
    fresh: bool = False
    fork: str | None = None
    skip_agents: tuple[str, ...] = ()
    exec_line: str | None = None

    @property
    def on_no_valid(self) -> str | None:
        """What to do where no checkpoint verifies; None as it is configured."""
        return "fresh" if self.fresh else None

    @property
    def words(self) -> list[str]:
        """The command to run afterwards; none where none was given."""
        return command_words(self.exec_line) if self.exec_line is not None else []

    def where(self, workflow: str) -> tuple[str, str, int | None]:
        """Answer workflow, mode and target, as the service takes them."""
        mode = MODES[self.mode or ("point-in-time" if self.target else "latest")]
        return workflow, mode, self.target

    def check(self) -> None:
        """Refuse what does not go together.

        Raises:
            UsageError: something does not.
        """
        needs_target = self.mode == "point-in-time"
        if (needs_target and self.target is None) or (
            self.mode in ("latest", "full") and self.target is not None
        ):
            raise click.UsageError("--mode point-in-time and --to N go together, and --to with no other mode")
        if self.fresh and self.target is not None:
            raise click.UsageError("--fresh and --to do not go together: what goes back needs its checkpoint")
        if self.fork is not None and (self.fresh or self.mode == "full" or self.take_over):
            raise click.UsageError("--fork goes with none of --fresh, --mode full and --take-over")
        if self.fork is not None and self.checkpoint is not None:
            raise click.UsageError("a fork begins with a checkpoint: leave --checkpoint out")
        if self.skip_agents and self.target is not None and self.fork is None:
            raise click.UsageError(
                "--skip-agent with --to needs --fork: the workflow itself has gone on since"
            )
        if self.no_resume and (self.app or self.handler):
            raise click.UsageError("--no-resume and --app or --handler do not go together")

    def program(self) -> App | None:
        """Load the program that a flag or the configuration names, unless nothing is to be resumed."""
        if self.no_resume:
            return None
        from holdfast.cli.app_loading import load_app
        from holdfast.config import Config

        named = self.app or Config.load().app
        if named is None and self.handler is not None:
            raise click.UsageError("--handler needs --app, or app in holdfast.toml")
        return load_app(named) if named else None
