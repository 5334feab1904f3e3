"""Running the server until somebody ends it."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from holdfast.domain.errors import ConfigError
from holdfast.server.app import build
from holdfast.server.desk import Desk
from holdfast.server.patience import PatientProtocol
from holdfast.server.settings import Settings


def listen(settings: Settings) -> socket.socket:
    """Take the address.

    Raises:
        ConfigError: it is taken, or none of this machine's.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
    except (OSError, OverflowError) as problem:
        listener.close()
        raise ConfigError(
            f"cannot listen there ({getattr(problem, 'strerror', None) or problem})",
            place=f"{settings.host}:{settings.port}",
            hint="Name another address with --bind HOST:PORT; port 0 takes any that is free.",
        ) from None
    return listener


def serve(desk: Desk, listener: socket.socket, on_ready: Callable[[], None]) -> None:
    """Answer requests until SIGINT or SIGTERM; then end open streams and finish what is under way."""
    server(desk, on_ready).run(sockets=[listener])


def server(desk: Desk, on_ready: Callable[[], None]) -> uvicorn.Server:
    """Make what answers requests until `should_exit` is set.

    Raises:
        ConfigError: its certificate cannot be used.
    """
    settings = desk.settings
    config = uvicorn.Config(
        build(desk),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        timeout_keep_alive=15,
        limit_concurrency=512,
        h11_max_incomplete_event_size=32 * 1024,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        lifespan="on",
        http=PatientProtocol,
        # Whoever asks cannot say who asks; and nobody here speaks anything but HTTP.
        proxy_headers=False,
        ws="none",
    )
    _check_certificate(config)
    return _Server(config, desk, on_ready)


def _check_certificate(config: uvicorn.Config) -> None:
    """Read the certificate now, while it can be said what is wrong with it.

    Raises:
        ConfigError: it cannot be used.
    """
    if config.ssl_certfile is None:
        return
    try:
        config.load()
    except OSError as problem:
        raise ConfigError(
            f"the certificate or its key cannot be used ({problem.strerror or problem})",
            place=str(config.ssl_certfile),
            hint="Give PEM files with --tls-cert and --tls-key.",
        ) from None


class _Server(uvicorn.Server):
    """Tells when it listens, and ends streams first: they would keep it from ending."""

    def __init__(self, config: uvicorn.Config, desk: Desk, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._desk = desk
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._desk.end_streams()
        await super().shutdown(sockets)
