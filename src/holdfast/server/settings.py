"""How one server behaves: where it listens, and what it lets nobody exceed."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from holdfast.domain.errors import ConfigError

DEFAULT_BIND = "127.0.0.1:8787"
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for on the command line.

    Attributes:
        hosts: names that requests may ask for beside those of the bind, without ports.
        is_proxied: whether something in front of it speaks TLS with others.
        body_bytes: no request is larger.
        page: no listing answers more rows at once.
        rate: so many requests a second for each that asks; short bursts may have twice as many.
        failure_rate: so many attempts a second to be let in that fail, for each address.
        request_seconds: a request that takes longer is given up.
        threads: so many requests are answered at once.
        streams: so many clients may be listening at once.
        stream_seconds: no stream lasts longer; whoever listens goes on after the last event heard.
        shutdown_seconds: how long open requests may take once the server is to end.
    """

    host: str = "127.0.0.1"
    port: int = 8787
    hosts: frozenset[str] = frozenset()
    is_read_only: bool = False
    tls_cert: str | None = None
    tls_key: str | None = None
    is_proxied: bool = False
    body_bytes: int = 1024 * 1024
    page: int = 500
    rate: float = 200.0
    failure_rate: float = 2.0
    request_seconds: float = 30.0
    threads: int = 16
    streams: int = 64
    stream_seconds: float = 3600.0
    shutdown_seconds: int = 5

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_secure(self) -> bool:
        """Whether browsers ask through TLS, here or before it."""
        return self.tls_cert is not None or self.is_proxied

    @property
    def url(self) -> str:
        """Where people find it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """Names that a request may give as its Host, without ports."""
        own = f"[{self.host}]" if ":" in self.host else self.host
        return self.hosts | {own.lower()} | (_LOCAL_NAMES if self.is_local else frozenset())


def parse_bind(text: str) -> tuple[str, int]:
    """Take `HOST:PORT` apart; the port may be left out, and so may the host.

    Raises:
        ConfigError: it is none.
    """
    if text.isdecimal():
        text = f":{text}"
    # An IPv6 address has colons of its own; with a port it stands in brackets.
    is_bare = text.endswith("]") or (text.count(":") > 1 and not text.startswith("["))
    host, _, port = (text, "", "") if is_bare or ":" not in text else text.rpartition(":")
    host, port = host or "127.0.0.1", port or "8787"
    if not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"{text!r} is nothing to listen on", hint=f"Write HOST:PORT: {DEFAULT_BIND}.")
    return host.removeprefix("[").removesuffix("]"), int(port)
