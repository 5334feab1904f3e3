"""How many bytes a place has on disk. Needs psycopg for a database, the standard library for the rest."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from benchmarks.compare.contender import path_of


def bytes_at(url: str) -> int:
    """Bytes as `du` counts them below a path, or as the server counts those of a database."""
    if url.startswith("postgresql:"):
        with import_module("psycopg").connect(url, autocommit=True) as connection:
            (size,) = connection.execute("select pg_database_size(current_database())").fetchone()
        return int(size)
    # An SQLite file has others beside it that begin with its name.
    path = Path(path_of(url))
    found = [one for start in path.parent.glob(path.name + "*") for one in (start, *start.rglob("*"))]
    return sum(os.lstat(one).st_blocks * 512 for one in found)
