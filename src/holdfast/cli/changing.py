"""What every command takes that changes something: --dry-run, --yes and --reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

import click

from holdfast.cli.asking import confirm
from holdfast.cli.output import Output

REASON_HELP = "Why; it stays in the trail, so name nobody."


@dataclass(frozen=True, slots=True)
class Change:
    """How a change is asked for: just to see it, without being asked, and why."""

    dry_run: bool = False
    yes: bool = False
    reason: str | None = None

    @property
    def why(self) -> str:
        """The reason, of a command that cannot be called without one."""
        return self.reason or ""

    def confirm(self, output: Output, what: str) -> None:
        """Ask whether to go on, unless that was said already."""
        confirm(output, what, yes=self.yes)


def changes(*, needs_reason: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command the three options, and its function a `change`.

    Args:
        needs_reason: whether the command is refused without a reason.
    """
    options = (
        click.option("--dry-run", is_flag=True, help="Show what would happen, and change nothing."),
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--reason", metavar="TEXT", required=needs_reason, callback=_checked, help=REASON_HELP),
    )

    def given(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def grouped(*args: Any, dry_run: bool, yes: bool, reason: str | None, **rest: Any) -> Any:
            return command(*args, change=Change(dry_run, yes, reason), **rest)

        for option in reversed(options):
            grouped = option(grouped)
        return grouped

    return given


def _checked(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from holdfast.application.wishes import REASON_CHARS_MAX

    if not value.strip() or len(value) > REASON_CHARS_MAX:
        raise click.BadParameter(f"a reason has 1 to {REASON_CHARS_MAX} characters", context, option)
    return value


def tell_plan(output: Output, text: str, **fields: Any) -> None:
    """Say what a dry run would have done, and that nothing was."""
    if output.as_json:
        output.data({"dry_run": True, **fields})
    else:
        output.line(text)
        output.note("Nothing was changed.")
