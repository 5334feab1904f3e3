"""`holdfast serve`: the HTTP API and the dashboard, until somebody ends them."""

from __future__ import annotations

import math
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call, StoreCommand
from holdfast.cli.output import safe
from holdfast.cli.resolver_loading import resolver_named, resolver_option
from holdfast.domain.errors import PermissionDeniedError

if TYPE_CHECKING:
    from holdfast.application.kit import Kit
    from holdfast.application.revealing import Resolver
    from holdfast.server.desk import Desk
    from holdfast.server.settings import Settings

_HOST = re.compile(r"[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]+\]")


@click.command("serve", cls=StoreCommand)
@click.option(
    "--bind", metavar="HOST:PORT", default="127.0.0.1:8787", show_default=True, help="Where to listen."
)
@click.option("--read-only", is_flag=True, help="Change nothing, whoever asks.")
@click.option(
    "--allow-host", "hosts", metavar="NAME", multiple=True, help="A name that this server is asked by."
)
@click.option("--tls-cert", metavar="FILE", help="Certificate, for a server that others reach.")
@click.option("--tls-key", metavar="FILE", help="Its private key.")
@click.option("--behind-proxy", is_flag=True, help="A proxy in front of it speaks TLS with others.")
@resolver_option
@click.option(
    "--rate", metavar="N", type=click.FloatRange(min=0.1), default=200.0, help="Requests a second for each."
)
def command(
    call: Call,
    bind: str,
    read_only: bool,
    hosts: tuple[str, ...],
    tls_cert: str | None,
    tls_key: str | None,
    behind_proxy: bool,
    resolver: str | None,
    rate: float,
) -> None:
    """Serve the HTTP API and the dashboard.

    Listens on this machine only, unless --bind says otherwise. Everybody who
    asks needs a token (`holdfast token create`); the address that is printed
    at the start signs your browser in. Ctrl-C ends it.

    Secrets in states are masked. With --resolver whoever has the scope
    state:reveal sees one after saying why, which is told in the trail.

    \b
    Example:
      holdfast serve --store ./kelp --bind 127.0.0.1:8787
    """
    settings = _settings(bind, read_only, hosts, tls_cert, tls_key, rate, is_proxied=behind_proxy)
    _serve(call, settings, resolver_named(resolver))


def _settings(
    bind: str,
    read_only: bool,
    hosts: tuple[str, ...],
    cert: str | None,
    key: str | None,
    rate: float,
    *,
    is_proxied: bool,
) -> Settings:
    if (cert is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    try:
        from holdfast.server.settings import Settings, parse_bind
    except ImportError as missing:
        raise _not_installed(missing) from missing
    if not math.isfinite(rate):
        raise click.UsageError("--rate is a number of requests a second")
    host, port = parse_bind(bind)
    _check_address(host)
    names = frozenset(map(_host, hosts))
    return Settings(host, port, names, read_only, cert, key, is_proxied, rate=rate)


def _check_address(host: str) -> None:
    """Refuse what is no address before anything is said of who could reach it."""
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        raise click.UsageError(f"--bind: {host} is no address; write HOST:PORT") from None


def _host(name: str) -> str:
    """Read a name that browsers ask for: one that can never be asked for helps nobody."""
    if _HOST.fullmatch(name) is None:
        raise click.UsageError(f"--allow-host takes a name without scheme and port, not {name!r}")
    return name.lower()


def _not_installed(missing: ImportError) -> Exception:
    if (missing.name or "").startswith("holdfast"):
        return missing
    return Failure(
        "not_installed",
        Exit.UNEXPECTED,
        f"a package of the server is not installed ({missing.name})",
        hint="Run `pip install 'holdfast[server]'`.",
    )


def _serve(call: Call, settings: Settings, resolver_of: Callable[[Kit], Resolver] | None) -> None:
    from dataclasses import replace

    try:
        from holdfast.server import serving
        from holdfast.server.desk import open_desk
    except ImportError as missing:
        raise _not_installed(missing) from missing
    from holdfast.config import Config

    try:
        desk = open_desk(Config.load({"store": call.store}), settings)
    except PermissionDeniedError as denied:
        if not settings.is_read_only:
            denied.hint = f"{denied.hint} With --read-only it is served as it is."
        raise
    desk.resolver_of = resolver_of
    try:
        _refuse_open(desk, settings)
        listener = serving.listen(settings)
        desk.settings = replace(settings, port=listener.getsockname()[1])
        with suppress(KeyboardInterrupt):
            # What was said to end it has done so.
            serving.serve(desk, listener, lambda: _tell(call, desk))
    finally:
        desk.close()


def _refuse_open(desk: Desk, settings: Settings) -> None:
    """Refuse to let a network in where nobody has a token, or where tokens would cross it as they are.

    Raises:
        Failure: so it would be.
    """
    if settings.is_local:
        return
    now = desk.kit.clock.now()
    if all(token.has_expired(now) for token in desk.service.tokens.listing()):
        raise Failure(
            "no_token",
            Exit.REFUSED,
            "others could reach this server, and nobody has a token",
            place=settings.host,
            hint="Make one with `holdfast token create NAME --role viewer`, or bind 127.0.0.1.",
        )
    if not settings.is_secure:
        raise Failure(
            "no_tls",
            Exit.REFUSED,
            "others could reach this server, and tokens would cross the network as they are",
            place=settings.host,
            hint="Give --tls-cert and --tls-key, or --behind-proxy if something in front of it speaks TLS.",
        )


def _tell(call: Call, desk: Desk) -> None:
    """Say where it is; the key is in the part of the address that browsers do not send."""
    settings = desk.settings
    page = f"{settings.url}/ui/#key={desk.doorkeeper.key}"
    if call.output.as_json:
        told = {"message_type": "serving", "url": settings.url, "page": page}
        call.output.data({**told, "store": desk.kit.store.url, "read_only": desk.kit.store.read_only})
        return
    call.output.line(f"Serving {safe(desk.kit.store.url)}")
    call.output.line(f"  dashboard  {page}")
    call.output.line(f"  API        {settings.url}/v1/openapi.json")
    call.output.note("Ctrl-C ends it.")
