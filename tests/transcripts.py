"""Does what a page of the documentation shows: writes its files, types its commands, compares the output.

`<!-- file: NAME -->` before a fenced block makes it a file. In a block `console` each line that begins with
`$ ` is a command, and the lines below it are what it prints; a command with none is run all the same. `…`
stands for anything in a line, or alone in a line for any lines. What differs from run to run (times, ids,
hashes, sizes) is compared by its shape.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from holdfast.cli.main import main

#: What a reader types once on a machine, and a test must not.
NOT_RUN = ("pip install ", "python -m venv ", "source ")
#: A server ends when it is told to; it must not want the port that readers are shown.
SERVER = "holdfast serve"
#: Commands that load a program, which may end its process, and lines that only a shell understands.
_OWN_PROCESS = re.compile(r"(?!holdfast )|holdfast (run|resume|serve)\b|.*[|&;<>$*]")
_BLOCK = re.compile(
    r"(?:<!-- file: (?P<name>\S+) -->\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.DOTALL | re.M
)
_SHAPES = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"), "<time>"),
    (re.compile(r"cli-\d{4}-\d\d-\d\d"), "<session>"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "<sha256>"),
    (re.compile(r"\b[\d.,]+ (s|seconds?|minutes?|B|KB|MB)\b"), "<amount>"),
    (re.compile(r"\b\d+ (entries|right|more|payloads|faults)\b|signed up to \d+"), "<count>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<address>"),
    (re.compile(r" +"), " "),
)


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a reader does: write a file, or type a command."""

    name: str = ""
    text: str = ""
    command: str = ""
    printed: tuple[str, ...] = ()


def steps(page: str) -> Iterator[Step]:
    """Read a page as what its reader does, in order."""
    for block in _BLOCK.finditer(page):
        if block["name"]:
            yield Step(name=block["name"], text=block["body"])
        elif block["kind"] == "console":
            yield from _commands(block["body"])


def _commands(body: str) -> Iterator[Step]:
    command, printed = "", list[str]()
    for line in [*body.splitlines(), "$ "]:
        if not line.startswith("$ "):
            printed.append(line)
            continue
        if command and not command.startswith(NOT_RUN):
            yield Step(command=command.split("  # ")[0].strip(), printed=tuple(printed))
        command, printed = line.removeprefix("$ "), []


def differences(page: str, folder: Path) -> list[str]:
    """Do what a page shows, in a folder; answer what came out otherwise than shown."""
    found, code = list[str](), 0
    environment = _environment(folder)
    listed = list(steps(page))
    for step, following in zip(listed, [*listed[1:], Step()], strict=True):
        if step.name:
            (folder / step.name).write_text(step.text, encoding="utf-8")
            continue
        if step.command == "echo $?":
            said = f"{code}\n"
        else:
            said, code = _type(step, folder, environment)
            if code not in (0, 128 + signal.SIGKILL) and following.command != "echo $?":
                found.append(f"$ {step.command}\nended with {code}, which is not shown:\n{said}")
        if step.printed and not fits(step.printed, said):
            shown = "\n".join(step.printed)
            found.append(f"$ {step.command}\n--- shown\n{shown}\n--- printed\n{said}")
    return found


def _environment(folder: Path) -> dict[str, str]:
    """Answer what commands find around them: our programs, and nothing of this machine's settings."""
    ignored = ("HOLDFAST_", "COVERAGE_", "PYTHON")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ignored)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    # Standard output and standard error come in the order of a terminal.
    ours = {"PATH": path, "PYTHONUNBUFFERED": "1", "XDG_CONFIG_HOME": str(folder / "config")}
    return {**kept, **ours}


def _type(step: Step, folder: Path, environment: Mapping[str, str]) -> tuple[str, int]:
    if not _OWN_PROCESS.match(step.command):
        return _call(step.command, folder, environment)
    is_server = step.command.startswith(SERVER)
    line = f"{step.command} --bind 127.0.0.1:0" if is_server else step.command
    with subprocess.Popen(
        ["bash", "-c", f"exec {line}" if is_server else line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        if is_server:
            said = "".join(process.stdout.readline() for _ in step.printed)
            process.send_signal(signal.SIGTERM)
            process.stdout.read()
            return said, 0
        said = process.stdout.read()
    if process.returncode == -signal.SIGKILL:
        return f"{said}Killed\n", 128 + signal.SIGKILL
    return said, process.returncode


def _call(command: str, folder: Path, environment: Mapping[str, str]) -> tuple[str, int]:
    """Run a command line in this process: starting another takes longer than most commands."""
    said = io.StringIO()
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, environment, clear=True),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        code = main(shlex.split(command)[1:])
    return said.getvalue(), code


def fits(shown: tuple[str, ...], said: str) -> bool:
    """Tell whether what a page shows is what was said, but for what differs from run to run."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else re.escape(_shape(line)).replace("…", ".*") + r"\n"
        for line in shown
    )
    return re.fullmatch(pattern, "".join(f"{_shape(line)}\n" for line in said.splitlines())) is not None


def _shape(line: str) -> str:
    for pattern, name in _SHAPES:
        line = pattern.sub(name, line)
    return line.rstrip()
