"""What is around a command while it works: its settings file, its log, and the request it belongs to."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from holdfast.cli.terminal_text import safe

if TYPE_CHECKING:
    import logging

_LOGGER = "holdfast"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What was asked for around a command.

    Attributes:
        config: a settings file instead of ./holdfast.toml.
        profile: the table of that file that wins over the others.
        verbose: 0 logs warnings only, 1 what is done, 2 more of it.
        log_format: text or json.
        request_id: what everything that is told in the trail carries.
    """

    config: str | None = None
    profile: str | None = None
    verbose: int = 0
    log_format: str | None = None
    request_id: str | None = None

    @contextmanager
    def entered(self, command: str) -> Iterator[None]:
        """Have it so for as long as a command works."""
        with ExitStack() as stack:
            # As variables, because processes that a command starts need the same settings.
            stack.enter_context(_variables(HOLDFAST_CONFIG=self.config, HOLDFAST_PROFILE=self.profile))
            if self.verbose or self.log_format:
                stack.enter_context(_logging(self.verbose, self.log_format or "text"))
            if self.request_id:
                from holdfast.application.trailing import correlate

                stack.enter_context(correlate(self.request_id))
            if self.verbose:
                stack.enter_context(_timed(command))
            yield


@contextmanager
def _variables(**wanted: str | None) -> Iterator[None]:
    """Set variables of the environment for a while; those that are None stay as they are."""
    given = {name: value for name, value in wanted.items() if value is not None}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _logging(verbose: int, log_format: str) -> Iterator[None]:
    """Write what Holdfast logs to standard error."""
    import logging

    logger = logging.getLogger(_LOGGER)
    handler = _handler(log_format)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel((logging.WARNING, logging.INFO)[verbose] if verbose < 2 else logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        level, logger.propagate = before
        logger.setLevel(level)


def _handler(log_format: str) -> logging.Handler:
    import logging

    class ToStandardError(logging.Handler):
        """Echoes each record to where standard error is at that moment."""

        def emit(self, record: logging.LogRecord) -> None:
            click.echo(self.format(record), err=True)

    handler = ToStandardError()
    handler.setFormatter(_json_lines() if log_format == "json" else _plain_lines())
    return handler


def _plain_lines() -> logging.Formatter:
    import logging

    class PlainLines(logging.Formatter):
        """Writes when, how grave and what, with nothing in it that a terminal obeys."""

        @staticmethod
        def converter(seconds: float | None = None) -> time.struct_time:
            return time.gmtime(seconds)

        def format(self, record: logging.LogRecord) -> str:
            return safe(super().format(record))

    return PlainLines("%(asctime)s UTC %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S")


def _json_lines() -> logging.Formatter:
    from holdfast.application.json_logs import JsonLines

    return JsonLines()


@contextmanager
def _timed(command: str) -> Iterator[None]:
    """Log that a command begins, how long it took, and whether it failed."""
    import logging

    logger = logging.getLogger(_LOGGER)
    logger.info("%s begins", command)
    started = time.perf_counter()
    how = "ended"
    try:
        yield
    except click.exceptions.Exit as leave:
        how = f"ended with {leave.exit_code}"
        raise
    except BaseException as error:
        how = f"failed ({type(error).__name__})"
        raise
    finally:
        logger.info("%s %s after %d ms", command, how, (time.perf_counter() - started) * 1000)
