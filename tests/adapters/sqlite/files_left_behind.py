"""Files as a dead writer leaves them: copied while a writer is in the middle of something."""

from __future__ import annotations

import shutil
from pathlib import Path

from holdfast.adapters.sqlite.driver import Driver
from holdfast.adapters.sqlite.files import uri
from holdfast.adapters.sqlite.store import SqliteStore
from tests.process.commits import make_commit


def commit_some(store: SqliteStore, count: int = 3) -> dict[int, str]:
    """Commit to WF-0; answer the checksums by sequence."""
    told = {}
    for _ in range(count):
        commit = make_commit(store.head("WF-0"), "WF-0", pad_bytes=5000)
        assert store.commit([commit]) == [None]
        told[commit.head.sequence] = commit.head.checksum
    return told


def with_hot_journal(path: Path, copy: Path, driver: Driver) -> None:
    """Copy a database in the middle of a transaction that has already overwritten some of its pages."""
    connection = driver.connect(uri(str(path), "rw"))
    connection.execute("pragma journal_mode = persist").fetchall()
    # So few pages fit into memory that changed ones go to the file before the end.
    connection.execute("pragma cache_size = 1").fetchall()
    connection.execute("begin immediate")
    connection.execute("update checkpoints set checksum = 'of a transaction that never ended'").fetchall()
    connection.execute("update checkpoints set data = zeroblob(20000)").fetchall()
    _copy(path, copy, "-journal")
    connection.execute("rollback")
    connection.close()


def with_log(path: Path, copy: Path, *, with_index: bool) -> None:
    """Copy a database whose last commits are in its write-ahead log alone, while it is open."""
    _copy(path, copy, "-wal", *(["-shm"] if with_index else []))


def _copy(path: Path, copy: Path, *endings: str) -> None:
    copy.parent.mkdir(exist_ok=True)
    for ending in ("", *endings):
        assert Path(f"{path}{ending}").stat().st_size, ending
        shutil.copyfile(f"{path}{ending}", f"{copy}{ending}")
