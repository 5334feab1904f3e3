"""Run what is read from standard input, and kill the process right after a commit that is counted.

`python -m tests.integrations.killed AFTER FOLDER`: after so many durable commits of a store of files or SQLite, before
anybody is told of the last; 0 never kills.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.sqlite.store import SqliteStore


def counted(commit: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    """Wrap a store's commit so that the process dies when enough were made durable."""

    def commit_and_count(self: Any, commits: Any) -> Any:
        outcomes = commit(self, commits)
        left[0] -= sum(outcome is None for outcome in outcomes)
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return outcomes

    return commit_and_count


def main() -> None:
    """Run the program."""
    after, folder = int(sys.argv[1]), sys.argv[2]
    code = compile(sys.stdin.read(), "sample", "exec", dont_inherit=True)
    os.chdir(folder)
    if after:
        left = [after]
        for store in (FilesystemStore, SqliteStore):
            store.commit = counted(store.commit, left)  # type: ignore[method-assign]
    # Where classes look for the names in their annotations.
    exec(code, sys.modules["__main__"].__dict__)


if __name__ == "__main__":
    main()
