"""Starting the loops of `tests.process.children` in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_SECONDS = 1700 if os.environ.get("HOLDFAST_CAMPAIGN") == "1" else 280


def run(module: str, name: str, *, is_measured: bool = True, **options: Any) -> Any:
    """Run one loop and answer what it printed.

    Args:
        is_measured: Whether coverage may watch the process. It keeps a lock of its own that a fork beside
            other threads can inherit locked: the child then waits for ever inside coverage.
    """
    command = [sys.executable, "-m", f"tests.process.{module}", name, json.dumps(options)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        env={key: value for key, value in os.environ.items() if is_measured or "COV" not in key},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
