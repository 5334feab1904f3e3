"""The way in for a process: an interrupt ends it as it should, whenever it comes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast.cli.exits import Exit
from tests.cli.running import heeded

ROOT = Path(__file__).parents[2]
INTERRUPTING = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
#: What modules that are no Python make of an interrupt.
FAILING = "raise ImportError('not set up') from KeyboardInterrupt()\n"
SCRIPT = "import sys; from holdfast.cli.entry import main; sys.exit(main())"


def interrupted(folder: Path, module: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Start the command line with a module in place of click that an interrupt comes in the middle of."""
    (folder / "click.py").write_text(module)
    path = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    with heeded(signal.SIGINT):
        return subprocess.run(
            [sys.executable, *words],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.mark.parametrize("module", [INTERRUPTING, FAILING])
@pytest.mark.parametrize("words", [("-m", "holdfast", "--help"), ("-c", SCRIPT, "--help")])
def test_an_interrupt_while_modules_are_read_is_one_line_and_130(tmp_path: Path, module, words):
    ended = interrupted(tmp_path, module, *words)
    assert (ended.returncode, ended.stdout, ended.stderr) == (Exit.INTERRUPTED, "", "error: interrupted\n")


def test_another_failure_while_modules_are_read_is_told_as_it_is(tmp_path: Path):
    ended = interrupted(tmp_path, "raise ImportError('half installed')\n", "-m", "holdfast", "--help")
    assert ended.returncode == 1 and "half installed" in ended.stderr


def test_the_script_that_is_installed_goes_this_way():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"holdfast": "holdfast.cli.entry:main"}
