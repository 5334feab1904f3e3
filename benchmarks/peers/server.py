"""One PostgreSQL server for all contenders, each run in a database of its own."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from holdfast.adapters.postgres.embedded import DATABASE, SUPERUSER, EmbeddedServer


class Server:
    """Gives out the URLs of databases that nobody has used yet."""

    def __init__(self, socket_folder: Path) -> None:
        self._socket_folder = socket_folder
        self._numbers = itertools.count(1)

    def new_database(self) -> str:
        name = f"bench_{next(self._numbers)}"
        with psycopg.connect(self._url(DATABASE), autocommit=True) as connection:
            connection.execute(f"create database {name}")
        return self._url(name)

    def drop(self, url: str) -> None:
        """Remove a database that was given out, whoever is still connected to it."""
        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(self._url(DATABASE), autocommit=True) as connection:
            connection.execute(f"drop database {name} with (force)")

    def _url(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}@/{database}?host={self._socket_folder}"


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Start a server as it comes from the wheel, with every commit synced; it listens on a socket alone."""
    server = EmbeddedServer(str(folder))
    server.enter(create=True)
    # The path of a socket may be about 100 bytes long; a link from a short one serves from anywhere.
    short = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    (short / "s").symlink_to(folder.resolve() / "data")
    try:
        yield Server(short / "s")
    finally:
        shutil.rmtree(short)
        server.leave()
