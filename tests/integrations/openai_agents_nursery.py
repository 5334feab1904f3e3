"""Run a program again and again, each time killed some commits later, and then once more to its end.

`python -m tests.integrations.openai_agents_nursery FOLDER COMMITS`, with the program on standard input. To
import the SDK takes seconds: it is done once, and each run is a child that begins from there. Prints one
line of JSON for each pair of runs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from types import CodeType

import agents.testing
import agents.tool_context

import holdfast.integrations.openai_agents
from holdfast.adapters.filesystem.store import FilesystemStore
from holdfast.adapters.sqlite.store import SqliteStore
from tests.integrations.killed import counted

#: Named, so that they are imported for a reason.
READY = (agents.testing, agents.tool_context, holdfast.integrations.openai_agents)


def run(code: CodeType, folder: Path, kill_after: int) -> tuple[int, list[str]]:
    """Run a program in a child; answers how that ended and what it printed."""
    folder.mkdir(exist_ok=True)
    printed = folder / f"printed-{kill_after}"
    child = os.fork()
    if child == 0:
        _begin(code, folder, printed, kill_after)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status, printed.read_text(encoding="utf-8").splitlines()


def _begin(code: CodeType, folder: Path, printed: Path, kill_after: int) -> None:
    ended = 1
    try:
        descriptor = os.open(printed, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.chdir(folder)
        if kill_after:
            left = [kill_after]
            for store in (FilesystemStore, SqliteStore):
                store.commit = counted(store.commit, left)  # type: ignore[method-assign]
        exec(code, {"__name__": "__main__"})
        ended = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended)


def main() -> None:
    """Kill later and later, until a run is over before it is killed."""
    root, code = Path(sys.argv[1]), compile(sys.stdin.read(), "sample", "exec")
    later, kill_after, status = int(sys.argv[2]), 0, -signal.SIGKILL
    while status == -signal.SIGKILL:
        kill_after += later
        folder = root / str(kill_after)
        status, first = run(code, folder, kill_after)
        again_status, again = run(code, folder, 0)
        told = {"status": status, "first": first, "again_status": again_status, "again": again}
        print(json.dumps({**told, "folder": str(folder)}), flush=True)


if __name__ == "__main__":
    main()
