"""Runs of a page's sample in children of one process that has imported its framework: that takes longest.

`python -m tests.integrations.google_adk_forks PAGE` reads a job in each line and answers with a line.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.integrations import killed
from tests.integrations.pages import ROOT, Run, sample

_TOLD = "\nimport sys\nprint(*sys.modules)\n"


class Forks:
    """The process that has imported everything, seen from outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, code: str, folder: Path, kill_after: int = 0) -> Run:
        """Run a sample in a child of its own, in a folder; kill it after so many commits, 0: not at all."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([code, str(folder), kill_after]) + "\n")
        self._process.stdin.flush()
        status, output, problem = json.loads(self._process.stdout.readline())
        return Run(os.waitstatus_to_exitcode(status), output.splitlines(), problem)


@contextmanager
def forks(page: str) -> Iterator[Forks]:
    """Start the process that imports everything a page's sample does, and end it."""
    command = [sys.executable, "-m", "tests.integrations.google_adk_forks", page]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Forks(process)
        assert process.stdin is not None
        process.stdin.close()


def main() -> None:
    """Answer jobs until there are no more."""
    # As the samples have it, but before anything is imported here.
    os.environ.update(HAYSTACK_TELEMETRY_ENABLED="false", OTEL_SDK_DISABLED="true")
    with tempfile.TemporaryDirectory() as folder:
        # What a run imports on its way is known once it was run; here it is only imported.
        _, modules, _ = _answer(sample(sys.argv[1]) + _TOLD, folder, 0)
    for module in modules.splitlines()[-1].split():
        with suppress(Exception):
            importlib.import_module(module)
    for line in sys.stdin:
        print(json.dumps(_answer(*json.loads(line))), flush=True)


def _answer(code: str, folder: str, kill_after: int) -> tuple[int, str, str]:
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as problem:
        child = os.fork()
        if child == 0:
            _run(code, folder, kill_after, output.fileno(), problem.fileno())
        _, status = os.waitpid(child, 0)
        output.seek(0)
        problem.seek(0)
        return status, output.read(), problem.read()


def _run(code: str, folder: str, kill_after: int, output: int, problem: int) -> None:
    """Be the child: run the sample as `tests.integrations.killed` does, and end."""
    os.dup2(output, 1)
    os.dup2(problem, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stdin, sys.argv = io.StringIO(code), ["killed", str(kill_after), folder]
    try:
        killed.main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
