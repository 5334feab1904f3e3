"""The way in: errors become a message and an exit code, never a stack trace."""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import click
import pytest

from holdfast import bootstrap
from holdfast.cli import group
from holdfast.cli.exits import Exit
from holdfast.domain.errors import StoreDamageWarning, StoreLockedError
from tests.canaries import TOKENS
from tests.cli.conftest import Run
from tests.cli.running import heeded


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Put a command in place of `version` that raises."""

    @click.command("version", cls=group.StoreCommand)
    def failing(call: group.Call) -> None:
        raise error

    monkeypatch.setattr(group.Commands, "get_command", lambda self, context, name: failing)


def start(*args: str, cwd: Path, **settings: Any) -> subprocess.Popen[bytes]:
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [sys.executable, "-m", "holdfast", *args], cwd=cwd, **settings
    )
    return process


def test_a_typing_error_in_a_command_gets_a_suggestion(run: Run):
    result = run("vldate")
    assert result.exit_code == Exit.USAGE
    assert result.err == "error: no such command: vldate\n hint: Did you mean validate?\n"


def test_a_command_like_no_other_is_sent_to_the_help(run: Run):
    assert run("xyzzy").err.endswith("hint: See `holdfast --help`.\n")


@pytest.mark.parametrize(
    "args",
    [("list", "--limt", "3"), ("list", "--limit", "x"), ("show",), ("--color", "pink", "list"), ("--nope",)],
)
def test_wrong_usage_ends_with_2(run: Run, args):
    result = run(*args)
    assert result.exit_code == Exit.USAGE
    assert result.out == "" and result.err.startswith("error: ") and "Traceback" not in result.err


def test_choices_are_told_on_one_line(run: Run):
    assert run("completion").err.splitlines()[0].endswith("Choose from: bash, zsh, fish")


def test_wrong_usage_is_told_in_json_too(run: Run):
    error = run("list", "--limt", "3", "--json").error
    assert error["message_type"] == "exit_error"
    assert (error["code"], error["exit_code"]) == ("wrong_usage", 2)
    assert set(error) == {"message_type", "code", "exit_code", "message", "place", "hint"}


def test_no_command_at_all_shows_the_help(run: Run):
    result = run()
    assert result.exit_code == Exit.USAGE
    assert result.out.startswith("Usage: holdfast") and "Commands:" in result.out


def test_an_error_of_the_library_has_its_exit_code_place_and_hint(run: Run, monkeypatch):
    fail_with(monkeypatch, StoreLockedError("in use", place="a\x1bb", hint="Wait."))
    result = run("version")
    assert result.exit_code == Exit.LOCKED
    assert result.err == "error: in use\n   at: a\\x1bb\n hint: Wait.\n"


def test_colour_of_errors_follows_the_flag_even_if_the_parser_failed(run: Run):
    assert "\x1b[31m" in run("nothing", "--color", "always").err
    assert "\x1b[31m" in run("--color=always", "nothing").err
    assert "\x1b" not in run("--color=odd", "nothing").err


def test_a_defect_of_ours_is_one_line_and_exit_1(run: Run, monkeypatch):
    fail_with(monkeypatch, ZeroDivisionError("oops"))
    result = run("version")
    assert result.exit_code == Exit.UNEXPECTED
    assert result.err.startswith("error: unexpected failure (ZeroDivisionError: oops)\n")


def test_a_defect_of_ours_gives_no_secret_away(run: Run, monkeypatch):
    fail_with(monkeypatch, ValueError(f"cannot use {TOKENS[0].secret}"))
    result = run("version")
    assert TOKENS[0].secret not in result.err
    assert "cannot use [REDACTED:" in result.err


def test_an_interrupt_ends_with_130(run: Run, monkeypatch):
    for interrupt in (KeyboardInterrupt(), click.Abort()):
        fail_with(monkeypatch, interrupt)
        assert run("version").exit_code == Exit.INTERRUPTED


def test_an_error_that_an_interrupt_was_made_into_is_one_too(run: Run, monkeypatch):
    error = ImportError("initialization failed")
    error.__cause__ = KeyboardInterrupt()
    fail_with(monkeypatch, error)
    result = run("version")
    assert result.exit_code == Exit.INTERRUPTED
    assert result.err == "error: interrupted\n"


def test_a_warning_is_one_line(run: Run, monkeypatch):
    @click.command("version", cls=group.StoreCommand)
    def warning(call: group.Call) -> None:
        warnings.warn("something \x1b odd", StoreDamageWarning, stacklevel=1)

    monkeypatch.setattr(group.Commands, "get_command", lambda self, context, name: warning)
    result = run("version")
    assert (result.exit_code, result.err) == (0, "warning: something \\x1b odd\n")


def test_developers_see_the_stack(run: Run, monkeypatch):
    class Flags:
        dev_mode = True

    fail_with(monkeypatch, ZeroDivisionError("oops"))
    monkeypatch.setattr("sys.flags", Flags)
    with pytest.raises(ZeroDivisionError):
        run("version")


@pytest.mark.sweep
def test_a_closed_pipe_ends_quietly(store: Path):
    reading, writing = os.pipe()
    os.close(reading)
    with start(
        "list", "WF-1", "--store", str(store), cwd=store, stdout=writing, stderr=subprocess.PIPE
    ) as process:
        os.close(writing)
        _, err = process.communicate()
    assert (process.returncode, err) == (Exit.PIPE_CLOSED, b"")


@pytest.mark.sweep
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("flag", ["--state", "--raw"])
def test_a_reader_that_goes_amid_a_line_is_noticed(tmp_path: Path, flag, unbuffered):
    with bootstrap.open(
        str(tmp_path / ".holdfast"), compression="none", blob_threshold_bytes=2**20
    ) as service:
        service.create_checkpoint("WF-1", {})
        service.create_checkpoint("WF-1", {"text": secrets.token_hex(200_000)})
    reading, writing = os.pipe()
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with start("show", "WF-1", flag, cwd=tmp_path, stdout=writing, env=env) as process:
        os.close(writing)
        # No pipe holds the line as a whole: a write of it has begun, and waits for us.
        os.read(reading, 1)
        os.close(reading)
    assert process.returncode == Exit.PIPE_CLOSED


@pytest.mark.sweep
def test_letters_that_a_terminal_cannot_show_are_spelled_out(store: Path):
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    args = ("show", "WF-1@2", "--state=/messages/1", "--store", str(store))
    with start(*args, cwd=store, stdout=subprocess.PIPE, env=env) as process:
        out, _ = process.communicate()
    assert process.returncode == 0
    assert b"caf\xe9 \\u2603" in out


@pytest.mark.sweep
@pytest.mark.parametrize(("number", "leave"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_a_demo_with_their_code_and_its_folder_is_gone(tmp_path: Path, number, leave):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    heard, said = socket.socketpair()
    # Few lines fit in: the demo cannot have come to its end before the first steps are read here.
    said.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    with heeded(number), said:
        process = start("demo", cwd=tmp_path, stdout=said, stderr=subprocess.DEVNULL, env=env)
    with process, heard, heard.makefile("rb", buffering=0) as lines:
        # The first step is committed: the demo is under way, with a child of its own.
        assert any(b"grip, stalk, blades" in line for line in lines)
        process.send_signal(number)
        lines.readall()
    assert process.returncode == leave
    assert list(tmp_path.glob("holdfast-demo-*")) == []


@pytest.mark.sweep
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_under_our_output_is_told(store: Path, unbuffered):
    env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    with open("/dev/full", "wb") as full:
        args = ("list", "--store", str(store))
        with start(*args, cwd=store, stdout=full, stderr=subprocess.PIPE, env=env) as process:
            _, err = process.communicate()
    assert process.returncode == Exit.UNEXPECTED
    assert err == b"error: standard output cannot be written (No space left on device)\n"


@pytest.mark.sweep
def test_closed_streams_are_no_failure(store: Path):
    program = f"{sys.executable} -m holdfast --store '{store}'"
    for call, leave in (("list >&- 2>&-", 0), ("prune --keep-last 2 --keep-days 0 <&-", Exit.REFUSED)):
        ended = subprocess.run(f"{program} {call}", shell=True, cwd=store, stderr=subprocess.DEVNULL)
        assert ended.returncode == leave


def test_python_dash_m_is_the_same_command(tmp_path: Path):
    with start("version", "--json", cwd=tmp_path, stdout=subprocess.PIPE) as process:
        out, _ = process.communicate()
    assert json.loads(out)["holdfast"]
