"""Run what is read from standard input, killed after some of its commits, and each time once more to its end.

`python -m tests.integrations.pydantic_ai_forked FOLDER FIRST EVERY` kills after the commit FIRST, then EVERY
commits later, and so on until a run ends before it is killed. It prints a line of JSON for each. It imports
the framework once, which takes seconds, and forks: each run is a process of its own all the same.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import count
from pathlib import Path
from types import CodeType

import pydantic_ai.models.function  # noqa: F401 - the same

import holdfast.integrations.pydantic_ai_conversations  # noqa: F401 - what the forks shall not import again
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.sqlite.store import SqliteStore
from tests.integrations.killed import counted


def run_forked(code: CodeType, folder: Path, kill_after: int) -> tuple[int, list[str]]:
    """Answer how a run ended, and the lines it had printed until then."""
    printed = folder / "printed"
    child = os.fork()
    if child == 0:
        _run(code, folder, printed, kill_after)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), printed.read_text().splitlines()


def _run(code: CodeType, folder: Path, printed: Path, kill_after: int) -> None:
    ended = 1
    try:
        os.chdir(folder)
        sys.stdout = printed.open("w", buffering=1)
        if kill_after:
            left = [kill_after]
            for store in (FilesystemStore, SqliteStore):
                store.commit = counted(store.commit, left)  # type: ignore[method-assign]
        exec(code, {"__name__": "__main__"})
        ended = 0
    finally:
        sys.stdout.flush()
        os._exit(ended)


def main() -> None:
    """Run the program until it makes less commits than it is killed after."""
    folder, code = Path(sys.argv[1]), compile(sys.stdin.read(), "sample", "exec")
    for kill_after in count(int(sys.argv[2]), int(sys.argv[3])):
        place = folder / str(kill_after)
        place.mkdir()
        first = run_forked(code, place, kill_after)
        second = run_forked(code, place, 0)
        print(json.dumps([first, second]), flush=True)
        if first[0] == 0:
            break


if __name__ == "__main__":
    main()
