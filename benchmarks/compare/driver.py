"""Asks every contender the same, in turns, each in a process of its own environment."""

from __future__ import annotations

import itertools
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.compare.contender import path_of
from benchmarks.compare.lanes import FILES, POSTGRES, Lane
from benchmarks.peers.server import Server

ROOT = Path(__file__).resolve().parents[2]
#: Beyond the time that a chat may take, whoever has not answered by then is stuck.
PATIENCE_SECONDS = 240.0
#: Settings that change what a contender does, and what makes Python compile at each start.
UNWANTED = ("DBOS", "HOLDFAST", "LANGCHAIN", "LANGGRAPH", "LANGSMITH", "PG", "PYTHONDONTWRITEBYTECODE")

Answer = dict[str, Any]
PythonOf = Callable[[str], Path]


class Places:
    """Gives out URLs of places that nobody has used yet, and clears them away."""

    def __init__(self, folder: Path, server: Server | None) -> None:
        self._folder = folder
        self._server = server
        self._numbers = itertools.count(1)

    def new(self, store: str) -> str:
        if store == POSTGRES:
            if self._server is None:
                raise ValueError("there is no PostgreSQL server to make a database on")
            return self._server.new_database()
        folder = self._folder / f"{next(self._numbers)}"
        folder.mkdir(parents=True)
        return f"{'file' if store == FILES else 'sqlite'}:{folder / 'store'}"

    def clear(self, url: str) -> None:
        if self._server is not None and url.startswith("postgresql:"):
            self._server.drop(url)
        else:
            shutil.rmtree(Path(path_of(url)).parent, ignore_errors=True)


class Child:
    """The process of one contender, asked one thing after another; started again if it ended."""

    def __init__(self, lane: Lane, python_of: PythonOf, log: Path) -> None:
        self._lane = lane
        self._python = python_of(lane.environment) if lane.environment else Path(sys.executable)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self.versions: dict[str, str] = {}

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command("child", self._lane.maker),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(),
                cwd=ROOT,
            )
        self.versions = self._line(PATIENCE_SECONDS).get("versions", {})

    def ask(self, kind: str, arguments: Answer, url: str) -> Answer:
        """Have a workload measured; a process that ends or is stuck is told as failed."""
        if kind == "resume":
            return self._killed_and_resumed(url, arguments["kill_at"])
        if self._process is None or self._process.poll() is not None:
            self.start()
        if self._process is None or self._process.stdin is None:
            return {"failed": f"its process did not start again, see {self._log.name}"}
        asked = {"workload": kind, "arguments": arguments, "url": url}
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        return self._line(PATIENCE_SECONDS + arguments.get("budget_seconds", 0))

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _line(self, seconds: float) -> Answer:
        assert self._process is not None and self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            is_there = selector.select(seconds)
        line = self._process.stdout.readline() if is_there else b""
        if line:
            answer: Answer = json.loads(line)
            return answer
        self.stop()
        why = "its process ended" if is_there else f"no answer within {seconds:.0f} s"
        return {"failed": f"{why}, see {self._log.name}"}

    def _killed_and_resumed(self, url: str, kill_at: int) -> Answer:
        killed = self._once(url, kill_at, "kill")
        if killed.returncode != -signal.SIGKILL:
            return {"failed": f"it was to be killed and ended with {killed.returncode}: {_last(killed)}"}
        resumed = self._once(url, kill_at, str(time.monotonic()))
        if resumed.returncode != 0 or not resumed.stdout:
            return {"failed": f"it did not resume, but ended with {resumed.returncode}: {_last(resumed)}"}
        answer: Answer = json.loads(resumed.stdout)
        if not answer["is_equal"]:
            return {"not_equal": f"it went on with step {answer['step']}, or with another state"}
        return answer

    def _once(self, url: str, kill_at: int, mode: str) -> subprocess.CompletedProcess[bytes]:
        command = self._command("killed", self._lane.maker, url, str(kill_at), mode)
        return subprocess.run(
            command, capture_output=True, env=environment(), cwd=ROOT, timeout=PATIENCE_SECONDS, check=False
        )

    def _command(self, module: str, *arguments: str) -> list[str]:
        return [str(self._python), "-m", f"benchmarks.compare.{module}", *arguments]


def environment() -> dict[str, str]:
    """Ours without what would change a contender; Holdfast comes from this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(UNWANTED)}
    return {**kept, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}


def _last(done: subprocess.CompletedProcess[bytes]) -> str:
    return (done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"])[-1]
