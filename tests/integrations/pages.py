"""The sample of a page about a framework, run as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
_SNIPPET = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def sample(name: str) -> str:
    """Answer everything in Python that a page of docs/integrations holds, in order."""
    page = ROOT / "docs" / "integrations" / f"{name}.md"
    return "\n".join(_SNIPPET.findall(page.read_text(encoding="utf-8")))


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of a program ended, the lines it had printed until then, and what it complained of."""

    code: int
    lines: list[str]
    problem: str


def run_sample(code: str, folder: Path) -> Run:
    """Run a program in a new interpreter, in a folder: what it keeps stays there."""
    source = folder / "sample.py"
    source.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, source],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    return Run(done.returncode, done.stdout.splitlines(), done.stderr)
