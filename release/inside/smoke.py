"""What everybody does first, without any extra: `python -I smoke.py README.md` in an empty environment.

Runs every line of Python and every command of the page, asks every command for help, and kills a writer on
files and on SQLite. Ends with the first thing that is not as it should be.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import holdfast

PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: Commands of the page that end otherwise here: how, and what they say.
ENDS = {
    "erase": (31, "needs --yes"),  # nobody is there to be asked
    "serve": (1, "holdfast[server]"),
}
COMMIT_SECONDS_MAX = 60
ACKNOWLEDGED_BEFORE_KILL = 20
WRITER = """
import sys, holdfast
with holdfast.open(sys.argv[1]) as hf:
    for step in range(1_000_000):
        hf.create_checkpoint("WF", {"step": step, "text": "kelp " * step})
        print(step, flush=True)
"""


def main(page: Path) -> None:
    """Do all of it in the current folder."""
    started = time.perf_counter()
    told = [origin(), python_of(page), commands_of(page), helps(), completed()]
    told += [killed(url) for url in ("file:killed", "sqlite:killed.db")]
    print(f"{'; '.join(told)}; {time.perf_counter() - started:.0f} s")


def origin() -> str:
    """See that it is the installed package that is tried, and that it knows its version."""
    place = Path(holdfast.__file__)
    assert place.is_relative_to(sys.prefix), f"{place} is not of this environment"
    assert holdfast.__version__ == importlib.metadata.version("holdfast")
    assert json.loads(run("version", "--json"))["holdfast"] == holdfast.__version__
    return f"holdfast {holdfast.__version__} on Python {sys.version.partition(' ')[0]}"


def python_of(page: Path) -> str:
    """Run the Python of the page; its first team is kept as the program that the commands name."""
    blocks = PYTHON.findall(page.read_text("utf-8"))
    team = next(block for block in blocks if "@team.agent" in block)
    Path("report.py").write_text(team, "utf-8")
    program = [sys.executable, "-I", "-W", "error", "-c", "\n".join(blocks)]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return f"{len(blocks)} snippets"


def commands_of(page: Path) -> str:
    """Run the commands of the page, one after the other."""
    lines = "".join(CONSOLE.findall(page.read_text("utf-8"))).splitlines()
    commands = [shlex.split(line[2:], comments=True)[1:] for line in lines if line.startswith("$ holdfast ")]
    assert len(commands) > 1, "the page shows no commands"
    for command in commands:
        code, words = ENDS.get(command[0], (0, ""))
        assert words in run(*command, code=code), command
    return f"{len(commands)} commands"


def helps() -> str:
    """Ask every command for help, those of groups too."""
    from click.testing import CliRunner

    from holdfast.cli.group import holdfast as cli

    asked, left = 0, list[tuple[list[str], Any]]([([], cli)])
    while left:
        path, command = left.pop()
        result = CliRunner().invoke(cli, [*path, "--help"], prog_name="holdfast")
        assert result.exit_code == 0 and "Usage:" in result.output, (path, result.output, result.exception)
        asked += 1
        names = command.list_commands(None) if hasattr(command, "list_commands") else []
        left += [([*path, name], command.get_command(None, name)) for name in names]
    return f"{asked} helps"


def completed() -> str:
    """Let a shell ask for what goes on with a word."""
    os.environ["COMP_TEXT"] = "holdfast doc"
    assert run("completion", "zsh", "--answer") == "doctor\n"
    return "completion"


def killed(url: str) -> str:
    """Kill a writer, and see that nothing is lost that it was told is kept."""
    with subprocess.Popen(
        [sys.executable, "-I", "-c", WRITER, url], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        acknowledged = 0
        for line in writer.stdout:
            acknowledged = int(line)
            if acknowledged == ACKNOWLEDGED_BEFORE_KILL:
                writer.send_signal(signal.SIGKILL)
    assert writer.returncode == -signal.SIGKILL, writer.returncode
    run("--store", url, "validate", "--all")
    with holdfast.open(url) as hf:
        result = hf.recover_workflow("WF")
        assert result.state is not None
        assert result.state.context["step"] >= acknowledged, (
            result.state.context["step"],
            acknowledged,
        )
        hf.create_checkpoint("WF", {"step": -1})
    run("--store", url, "doctor")
    return f"killed after {acknowledged + 1} commits to {url.partition(':')[0]}, none lost"


def run(*command: str, code: int = 0) -> str:
    """Run a command of ours; answers all that it printed."""
    program = Path(sys.prefix, "bin", "holdfast")
    done = subprocess.run(
        [program, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=COMMIT_SECONDS_MAX,
    )
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


if __name__ == "__main__":
    main(Path(sys.argv[1]))
