"""Run samples again and again: CrewAI takes seconds to import, so that is done once, and each run is a fork.

`python -m tests.integrations.crewai_runs`: for each run a line of JSON is read, `[code, folder, kill_after]`,
and one is written, `[exit code, lines, problem]`. A run dies as in `killed.py`: by `kill -9`, after a commit.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.integrations.pages import ROOT, Run

#: CrewAI is asked to be silent before it is imported, here and in the sample.
SILENT = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "OTEL_SDK_DISABLED": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
}

#: What every run imports.
NEEDED = (
    "crewai.hooks.contexts",
    "crewai.llms.base_llm",
    "holdfast.adapters.filesystem.store",
    "holdfast.adapters.redaction",
    "holdfast.adapters.sqlite.store",
    "holdfast.integrations.crewai",
)


class Runs:
    """Samples that are run as forks of one process that has CrewAI already."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, code: str, folder: Path, kill_after: int = 0) -> Run:
        """Run a sample in a folder; see `run_sample`."""
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps([code, str(folder), kill_after]), file=self._process.stdin, flush=True)
        return Run(*json.loads(self._process.stdout.readline()))


@contextmanager
def warm_runs() -> Iterator[Runs]:
    """Start the process that is forked, and end it at last."""
    command = [sys.executable, "-m", "tests.integrations.crewai_runs"]
    pipe = subprocess.PIPE
    environment = {**os.environ, **SILENT}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        yield Runs(process)
        assert process.stdin is not None
        process.stdin.close()


def main() -> None:
    """Serve runs until nothing more is read."""
    for module in NEEDED:
        importlib.import_module(module)
    with without_memory():
        for line in sys.stdin:
            code, folder, kill_after = json.loads(line)
            print(json.dumps(forked(code, folder, kill_after)), flush=True)


@contextmanager
def without_memory() -> Iterator[None]:
    """Give flows no memory: each would make one, in a database beside the program, and none here uses it."""
    factory = importlib.import_module("crewai.memory.storage.factory")
    factory.set_memory_storage_factory(lambda spec: object())
    yield
    factory.set_memory_storage_factory(None)


def forked(code: str, folder: str, kill_after: int) -> tuple[int, list[str], str]:
    """Run a sample in a fork, and answer how that ended and what it printed."""
    with tempfile.TemporaryFile("w+") as printed, tempfile.TemporaryFile("w+") as problem:
        child = os.fork()
        if child == 0:
            become(code, folder, kill_after, printed, problem)
        _, status = os.waitpid(child, 0)
        printed.seek(0)
        problem.seek(0)
        return os.waitstatus_to_exitcode(status), printed.read().splitlines(), problem.read()


def become(code: str, folder: str, kill_after: int, printed: IO[str], problem: IO[str]) -> None:
    """Be the sample, to the end of this process."""
    os.dup2(printed.fileno(), 1)
    os.dup2(problem.fileno(), 2)
    source = Path(folder, "sample.py")
    source.write_text(code, encoding="utf-8")
    try:
        sys.argv = ["killed", str(kill_after), folder]
        sys.stdin = source.open(encoding="utf-8")
        runpy.run_module("tests.integrations.killed", run_name="__main__")
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
