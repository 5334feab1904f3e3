"""`holdfast completion`: scripts that a real shell loads, and that complete commands and names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run
from tests.cli.running import environment

#: Completes each line of $LINES as bash does when somebody presses the key, and prints what it would offer.
PRESS = r"""
set -eu
eval "$(holdfast completion bash --quiet)"
complete -p holdfast >/dev/null
compopt() { echo "compopt $*"; }
while IFS= read -r COMP_LINE; do
    COMP_POINT=${#COMP_LINE}
    COMPREPLY=()
    _holdfast_completion holdfast "" ""
    printf '%s\n' "${COMPREPLY[*]}"
done <<< "$LINES_TYPED"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a command `holdfast`, for shells to find."""
    place = tmp_path / "bin"
    place.mkdir()
    command = place / "holdfast"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m holdfast "$@"\n')
    command.chmod(0o755)
    return place


def pressed(folder: Path, store: Path, *lines: str) -> list[str]:
    """Answer what each line is completed by."""
    more = {"LINES_TYPED": "\n".join(lines), "HOLDFAST_STORE": str(store)}
    env = {**environment(folder), "PATH": f"{folder}:{os.environ['PATH']}", **more}
    words = ["bash", "--norc", "-c", PRESS]
    done = subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_real_bash_completes_commands_workflows_checkpoints_and_files(folder: Path, store: Path):
    lines = ("holdfast repo", "holdfast show WF", "holdfast show WF-2@", "holdfast export --all --out ")
    assert pressed(folder, store, *lines) == ["report", "WF-1 WF-2", "latest 1", "compopt -o default", ""]


def test_a_real_bash_runs_nothing_that_a_store_says(folder: Path, store: Path):
    with holdfast.open(str(store)) as service:
        service.create_checkpoint("$(touch evil)", {})
        service.create_checkpoint("a*", {})
    assert pressed(folder, store, "holdfast show ") == ["WF-1 WF-2"]
    assert not (folder / "evil").exists()


def test_a_store_that_is_not_there_offers_nothing(folder: Path, tmp_path: Path):
    assert pressed(folder, tmp_path / "nowhere", "holdfast show W") == [""]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_asks_for_answers_and_is_told_how_to_be_used(run: Run, shell):
    result = run("completion", shell)
    assert result.exit_code == Exit.DONE and f"completion {shell} --answer" in result.out
    # In a pipe nothing is said: a shell that reads it at its start would say so each time.
    assert result.err == ""
    assert f"completion {shell}" in json.loads(run("completion", shell, "--json").out)["use"]
    data = run("completion", shell, "--json").data
    assert data["script"] == result.out and data["shell"] == shell
    installed = shutil.which(shell)
    if installed:
        subprocess.run([installed, "-n", "-c", result.out], check=True)


def test_a_shell_that_is_not_known_is_told(run: Run):
    assert run("completion", "tcsh").exit_code == Exit.USAGE


def test_answers_are_printed_line_by_line(run: Run, monkeypatch):
    monkeypatch.setenv("COMP_TEXT", "holdfast repo")
    assert run("completion", "zsh", "--answer").out == "report\n"
