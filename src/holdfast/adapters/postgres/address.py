"""Where a store is: a URL taken apart, and put together again without its secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, urlencode

import psycopg
from psycopg.conninfo import conninfo_to_dict

from holdfast.domain.errors import ConfigError

EMBEDDED = "postgresql+embedded:"
SCHEMA = "holdfast"

_SCHEMA_BYTES_MAX = 63
#: Written into a URL beside what libpq knows, and what each must look like.
_OURS = {
    "schema": re.compile(r"[^\0]+"),
    "pool_size": re.compile(r"[1-9][0-9]{0,3}"),
    "reconnect_seconds": re.compile(r"[0-9]{1,6}(\.[0-9]+)?"),
    "lock_seconds": re.compile(r"[0-9]{1,6}(\.[0-9]+)?"),
}
_PORTS = re.compile(r"[0-9,]*")
#: Unless the URL says otherwise. A dead network is noticed within half a minute.
_USUAL = {
    "application_name": "holdfast",
    "connect_timeout": "10",
    "keepalives_idle": "15",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is, and how patient its users are.

    Attributes:
        url: for people, without user name and secrets.
        schema: the schema that holds the tables.
        parameters: what libpq needs to connect; empty for an embedded server, which knows them itself.
        path: the folder of an embedded server, else empty.
        pool_size: connections at most, for all threads of a process.
        reconnect_seconds: how long a lost server is waited for.
        lock_seconds: how long a commit waits for another client that is in the middle of one.
    """

    url: str
    schema: str = SCHEMA
    parameters: Mapping[str, str] = field(default_factory=dict, repr=False)
    path: str = ""
    pool_size: int = 8
    reconnect_seconds: float = 30.0
    lock_seconds: float = 2.0


def read_address(url: str) -> Address:
    """Take a URL apart.

    Besides what libpq understands its query may say `schema` (by default `holdfast`), `pool_size`,
    `reconnect_seconds` and `lock_seconds`.

    Raises:
        ConfigError: the URL cannot be understood. The message does not repeat it: it may hold a password.
    """
    place, _, query = url.partition("?")
    asked = parse_qsl(query, keep_blank_values=True)
    ours = _read_ours({name: text for name, text in asked if name in _OURS})
    theirs = [(name, text) for name, text in asked if name not in _OURS]
    if place.startswith(EMBEDDED):
        return _embedded(place.removeprefix(EMBEDDED).removeprefix("//"), theirs, ours)
    parameters = _read_theirs(f"{place}?{urlencode(theirs, quote_via=quote)}" if theirs else place)
    return _address(_shown(parameters), {**_USUAL, **parameters}, "", ours)


def _embedded(path: str, theirs: list[tuple[str, str]], ours: dict[str, str]) -> Address:
    if theirs:
        raise ConfigError(
            f"an embedded server has no parameter {theirs[0][0]!r}",
            place=EMBEDDED,
            hint=f"Known are: {', '.join(sorted(_OURS))}.",
        )
    if not path:
        raise ConfigError("the URL names no folder", place=EMBEDDED, hint=f"Write {EMBEDDED}PATH.")
    return _address(EMBEDDED + path, {}, path, ours)


def _address(shown: str, parameters: Mapping[str, str], path: str, ours: dict[str, str]) -> Address:
    schema = ours.get("schema", SCHEMA)
    usual = Address("")
    return Address(
        url=f"{shown}{'&' if '?' in shown else '?'}schema={quote(schema)}" if schema != SCHEMA else shown,
        schema=schema,
        parameters=parameters,
        path=path,
        pool_size=int(ours.get("pool_size", usual.pool_size)),
        reconnect_seconds=float(ours.get("reconnect_seconds", usual.reconnect_seconds)),
        lock_seconds=float(ours.get("lock_seconds", usual.lock_seconds)),
    )


def _read_ours(asked: dict[str, str]) -> dict[str, str]:
    for name, text in asked.items():
        if not _OURS[name].fullmatch(text):
            raise ConfigError(f"{name} is {text!r}", place="the store's URL", hint="It cannot be that.")
    if len(asked.get("schema", "").encode()) > _SCHEMA_BYTES_MAX:
        raise ConfigError(
            "the name of the schema is too long",
            place="the store's URL",
            hint=f"PostgreSQL allows {_SCHEMA_BYTES_MAX} bytes.",
        )
    return asked


def _read_theirs(url: str) -> dict[str, str]:
    try:
        found = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    except psycopg.Error:
        # The driver's message repeats parts of the URL.
        raise _not_understood() from None
    # What libpq takes for a host, a port or a database may be the rest of a password that was not escaped.
    if any("@" in found.get(name, "") for name in ("host", "dbname")) or not _PORTS.fullmatch(
        found.get("port", "")
    ):
        raise _not_understood()
    return found


def _not_understood() -> ConfigError:
    return ConfigError(
        "the store's URL is not one that PostgreSQL understands",
        hint="Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE?schema=NAME; "
        "characters such as @ : / in a password are written %40 %3A %2F.",
    )


def _shown(parameters: Mapping[str, str]) -> str:
    host, port = parameters.get("host", ""), parameters.get("port", "")
    database = quote(parameters.get("dbname", ""))
    if host.startswith("/"):
        return f"postgresql:///{database}?host={quote(host)}"
    return f"postgresql://{host}{f':{port}' if port else ''}/{database}"
