"""Real servers for tests, from the wheel. One serves all tests of a process: a schema in it is a store."""

from __future__ import annotations

import atexit
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg

from holdfast.adapters.postgres.embedded import EmbeddedServer

MEMORY = Path("/dev/shm")
#: A role that must show a password; everybody else is let in.
GUARDED, PASSWORD = "guarded", "s3cr3t/p@ss"

_numbers = itertools.count(1)


def new_folder() -> Path:
    """A folder in memory where there is one: a killed server loses nothing that a slow disk would keep."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir=MEMORY if MEMORY.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _template() -> Path:
    """Make a data folder once: making one takes seconds, copying it does not."""
    folder = new_folder() / "template"
    server = EmbeddedServer(str(folder))
    server.enter(create=True)
    server.leave()
    with open(folder / "data" / "postgresql.conf", "a") as settings:
        # It would tidy up under tests that count what is dead.
        settings.write("autovacuum = off\n")
    rules = folder / "data" / "pg_hba.conf"
    rules.write_text(f"local all {GUARDED} scram-sha-256\n" + rules.read_text())
    return folder


def embedded_folder() -> Path:
    """A folder for an embedded server that nobody uses yet."""
    folder = new_folder() / "server"
    subprocess.run(["cp", "-a", str(_template()), str(folder)], check=True)
    return folder


@cache
def parameters() -> dict[str, str]:
    """Start the server when it is first needed, stop it at the end of the process; tell how to connect."""
    server = EmbeddedServer(str(embedded_folder()))
    server.enter(create=False)
    atexit.register(server.leave)
    known = server.parameters()
    with psycopg.connect(**known, autocommit=True) as connection:
        connection.execute(f"create role {GUARDED} login password '{PASSWORD}'")
        connection.execute("create role guest login")
    return known


def url(**query: str) -> str:
    """Where a store may be that nobody has used yet; or what else is asked for."""
    asked = {"schema": f"test_{next(_numbers)}", **query}
    return at(parameters()["host"], **asked)


def at(host: str, user: str = "postgres", database: str = "postgres", **query: str) -> str:
    """Write a URL for a server behind a socket."""
    asked = "&".join(f"{name}={quote(value, safe='')}" for name, value in {"host": host, **query}.items())
    return f"postgresql://{user}@/{database}?{asked}"


@contextmanager
def connected(url: str) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """Look at a store's tables past the store, as an administrator."""
    place, _, query = url.partition("?")
    known = dict(part.split("=", 1) for part in query.split("&"))
    with psycopg.connect(f"{place}?host={known['host']}", autocommit=True) as connection:
        connection.execute(f'set search_path = "{known["schema"]}"')
        yield connection
