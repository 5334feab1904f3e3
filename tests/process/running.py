"""Starting the loops of `tests.process.children` and others in processes of their own."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_SECONDS = 1700 if os.environ.get("HOLDFAST_CAMPAIGN") == "1" else 280


def run(module: str, name: str, **options: Any) -> Any:
    """Run one loop and answer what it printed."""
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        order = {
            "module": f"tests.process.{module}",
            "arguments": [name, json.dumps(options)],
            "env": _environment(),
            "out": out.name,
            "err": err.name,
        }
        status = _carried_out(order)
        assert status == 0, f"ended with {status}: {err.read().decode()}"
        return json.loads(out.read())


def _environment() -> dict[str, str]:
    # Coverage keeps a lock that a fork beside other threads can inherit locked, and waits for ever.
    return {name: value for name, value in os.environ.items() if "COV" not in name}


def _carried_out(order: dict[str, Any]) -> int:
    """Let the nursery run a module; answer its exit status."""
    nursery = _nursery()
    assert nursery.stdin is not None and nursery.stdout is not None
    nursery.stdin.write(json.dumps(order).encode() + b"\n")
    child = int(nursery.stdout.readline())
    try:
        if not select.select([nursery.stdout], [], [], TIMEOUT_SECONDS)[0]:
            raise TimeoutError(f"{order['arguments']} took more than {TIMEOUT_SECONDS} seconds")
    except BaseException:
        os.kill(child, signal.SIGKILL)
        nursery.stdout.readline()
        raise
    return int(nursery.stdout.readline())


@cache
def _nursery() -> subprocess.Popen[bytes]:
    """Start the nursery when it is first needed; it ends with the one who ordered."""
    command = [sys.executable, "-m", "tests.process.nursery"]
    pipe = subprocess.PIPE
    nursery = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, bufsize=0, env=_environment())
    atexit.register(_end, nursery, nursery.stdin, nursery.stdout)
    return nursery


def _end(nursery: subprocess.Popen[bytes], *pipes: IO[bytes] | None) -> None:
    for pipe in pipes:
        if pipe is not None:
            pipe.close()
    nursery.wait()
