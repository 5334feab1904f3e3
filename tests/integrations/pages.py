"""The sample of a page about a framework, run as it stands, killed after any commit, and run again."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_SNIPPET = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
KILLED = -9


def sample(name: str) -> str:
    """Answer everything in Python that a page of docs/integrations holds, in order."""
    page = ROOT / "docs" / "integrations" / f"{name}.md"
    return "\n".join(_SNIPPET.findall(page.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of a sample ended, and the lines it had printed until then."""

    code: int
    lines: list[str]
    problem: str


def run_sample(code: str, folder: Path, kill_after: int = 0) -> Run:
    """Run a sample in a process of its own, in a folder.

    Args:
        code: the sample.
        folder: where it runs; what it keeps stays there.
        kill_after: so many commits are durable when the process is killed with `kill -9`; 0: it is not.
    """
    command = [sys.executable, "-u", "-m", "tests.integrations.killed", str(kill_after), str(folder)]
    done = subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True)
    return Run(done.returncode, done.stdout.splitlines(), done.stderr)
