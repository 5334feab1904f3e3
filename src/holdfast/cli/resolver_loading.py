"""The resolver that a person names: where secrets are, or a function of the program's own.

The name comes from whoever runs the command, or from its configuration, never out of a store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from holdfast.domain.errors import ConfigError

# Imported where they are used: help must not wait for codecs and threads.
if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.revealing import Resolver

_Command = TypeVar("_Command", bound=Callable[..., Any])


def resolver_option(command: _Command) -> _Command:
    """Give a command the option that names what gives hidden values back."""
    told = "What gives hidden values back: file:PATH, env:NAME, command:PROGRAM or MODULE:FUNCTION."
    return click.option("--resolver", metavar="NAME", help=told)(command)


def resolver_named(text: str | None) -> Callable[[Kit], Resolver] | None:
    """Find what a flag or the configuration names; None if neither does.

    Raises:
        ConfigError: it names nothing that can be asked.
    """
    from holdfast.bootstrap_secrets import known_secrets
    from holdfast.cli.program_loading import load_function
    from holdfast.config import Config

    named = text or Config.load().resolver
    if not named:
        return None
    known = known_secrets(named)
    if known is not None:
        return known
    if ":" not in named:
        # What was written is not repeated: it may be a secret by mistake.
        hint = "Write file:PATH, env:NAME, command:PROGRAM or module:function."
        raise ConfigError("resolver names nothing that gives values back", hint=hint)
    function = load_function(named)
    return lambda kit: function
