"""`holdfast mcp`: let an agent look after its own checkpoints, over the Model Context Protocol."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from datetime import UTC, datetime
from types import FrameType

import click

from holdfast.cli.group import Call, StoreCommand

_SCOPES = ("read", "verify", "append")
#: The size that answers have at most unless something else is said; that of the server, told here too so that
#: help does not wait for it.
_ANSWER_BYTES = 100_000


@click.command("mcp", cls=StoreCommand)
@click.option("--write", is_flag=True, help="Open the tools that write: the scope append.")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(_SCOPES),
    multiple=True,
    help="Offer the tools of this scope only; may be repeated. [default: read, verify]",
)
@click.option("--prefix", metavar="TEXT", default="", help="Offer only workflows whose ids begin so.")
@click.option("--actor", metavar="NAME", help="Who the trail says it was. [default: your login name]")
@click.option(
    "--answer-bytes",
    metavar="N",
    type=click.IntRange(min=1_000),
    default=_ANSWER_BYTES,
    show_default=True,
    help="No answer is larger.",
)
def command(
    call: Call, write: bool, scopes: tuple[str, ...], prefix: str, actor: str | None, answer_bytes: int
) -> None:
    """Serve checkpoints to an agent over MCP.

    Speaks the Model Context Protocol on standard input and output, until the
    input ends. Without --write the agent can only look. Whatever it reads or
    writes is told in the trail, with the actor, the client and the reason.

    \b
    Example:
      holdfast mcp --write --prefix agent-7/ --actor agent-7
    """
    if "append" in scopes and not write:
        raise click.UsageError("--scope append needs --write as well")
    from holdfast.config import Config
    from holdfast.integrations.mcp_desk import DeskSettings, Scope, open_desk
    from holdfast.integrations.mcp_server import build_server

    wanted = frozenset(map(Scope, scopes or ("read", "verify"))) | ({Scope.APPEND} if write else frozenset())
    session = f"mcp-{datetime.now(UTC):%Y-%m-%d}-{secrets.token_hex(3)}"
    settings = {"store": call.store, "session": session, "actor": actor}
    # Whoever serves a store means that store, and recovers nothing by the way.
    config = Config.load({**settings, "enabled": True, "auto_recovery": False})
    desk = open_desk(config, DeskSettings(wanted, prefix, answer_bytes))
    try:
        with _spare_output(), _prompt_end(desk.close):
            build_server(desk, wanted).run("stdio")
    finally:
        desk.close()


@contextmanager
def _spare_output() -> Iterator[None]:
    """Give the protocol a standard output of its own: it closes the one it has when it is over."""
    with open(1, "w", encoding="utf-8", closefd=False) as spare, redirect_stdout(spare):
        yield


@contextmanager
def _prompt_end(close: Callable[[], None]) -> Iterator[None]:
    """End at a signal, with everything written: the thread that waits for input would hold the process up."""

    def leave(number: int, frame: FrameType | None) -> None:
        # This thread never has a lock of the store: whatever waits for the disk does so in others.
        close()
        os._exit(128 + number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in (number for number, handler in before.items() if handler is not signal.SIG_IGN):
        signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
