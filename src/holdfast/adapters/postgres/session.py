"""What every connection is told once, and what a server must be to be used."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from holdfast.adapters.postgres.address import Address
from holdfast.domain.errors import UnsupportedVersionError

#: The oldest server that it was tried on.
VERSION_MIN = 150000

# One round trip. A commit that is not synced is not durable, whatever the server's default says; every other
# value of `synchronous_commit` is the administrator's choice. Plans are made once, while tables may still be
# small, and must serve when they are large. A client that stops inside a transaction loses it after a minute.
_TELL = """
select set_config('search_path', %(search_path)s, false),
    set_config('lock_timeout', %(lock_timeout)s, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('default_transaction_read_only', %(read_only)s, false),
    set_config('idle_in_transaction_session_timeout', '60s', false),
    set_config(
        'synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false
    ),
    set_config('enable_seqscan', 'off', false),
    set_config('jit', 'off', false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('timezone', 'UTC', false),
    set_config('client_encoding', 'UTF8', false)
"""


def configure(connection: psycopg.Connection[Any], address: Address, *, read_only: bool) -> None:
    """Tell a new connection how it is used."""
    settings = {
        "search_path": sql.Identifier(address.schema).as_string(connection),
        "lock_timeout": f"{max(1, round(address.lock_seconds * 1000))}ms",
        "read_only": "on" if read_only else "off",
    }
    connection.execute(_TELL, settings)


def require_usable(connection: psycopg.Connection[Any], place: str) -> None:
    """Refuse a server that is too old, or a database that cannot hold every text.

    Raises:
        UnsupportedVersionError: says what is needed.
    """
    version = connection.info.server_version
    if version < VERSION_MIN:
        raise UnsupportedVersionError(
            f"the server is PostgreSQL {version // 10000}, at least {VERSION_MIN // 10000} is needed",
            place=place,
            hint="Upgrade the server.",
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise UnsupportedVersionError(
            f"the database has the encoding {encoding}",
            place=place,
            hint="Create one with: create database ... encoding 'UTF8' template template0.",
        )
