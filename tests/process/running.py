"""Starting the loops of `tests.process.children` in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_SECONDS = 280


def run(module: str, name: str, **options: Any) -> Any:
    """Run one loop and answer what it printed."""
    command = [sys.executable, "-m", f"tests.process.{module}", name, json.dumps(options)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
