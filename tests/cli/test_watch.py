"""`holdfast watch`: told as it happens, in every manner, and ended as its runs end."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

import holdfast
from holdfast.cli.exits import Exit
from holdfast.domain.checkpoint import CheckpointType
from tests.cli.conftest import Run
from tests.cli.running import environment, heeded


@contextmanager
def watching(
    folder: Path, *args: object, stdout: int = subprocess.PIPE, **variables: str
) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-m", "holdfast", "watch", *map(str, args), "--interval", "0.05"]
    env = {**environment(folder), **variables}
    with (
        heeded(signal.SIGINT),
        subprocess.Popen(words, text=True, stdout=stdout, stderr=subprocess.PIPE, env=env) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def end(store: Path, *, failed: bool = False) -> None:
    with holdfast.open(str(store)) as service:
        made = service.create_checkpoint("WF-1", {"last": True}, type=CheckpointType.WORKFLOW_COMPLETE)
        if failed:
            service.mark_failed(made, "no \x1b[31mfuel")


def test_a_workflow_that_has_ended_ends_it_at_once(run: Run, store: Path):
    end(store)
    result = run("watch", "WF-1", "--store", store)
    assert (result.exit_code, result.out) == (Exit.DONE, "")


def test_one_that_failed_ends_it_with_7(run: Run, store: Path):
    end(store, failed=True)
    result = run("watch", "WF-1", "--store", store, "--until", "done")
    assert (result.exit_code, result.err) == (Exit.RUN_FAILED, "failed: WF-1\n")


def test_what_happened_since_is_told_first_in_lines(run: Run, store: Path):
    end(store, failed=True)
    result = run("watch", "WF-1", "--store", store, "--since", "1h")
    assert len(result.out.splitlines()) == 7 and "\x1b" not in result.out
    assert "WF-1  failed  planner decided: go on (Why: why not)" in result.out
    assert "checkpoint 4 is failed: no " in result.out


def test_only_kinds_that_are_asked_for_are_told(run: Run, store: Path):
    end(store, failed=True)
    args = (
        "watch",
        "WF-1",
        "--store",
        store,
        "--since",
        "1h",
        "--events",
        "failure",
        "--events",
        "TASK_ASSIGNED",
    )
    result = run(*args, "--json")
    told = [json.loads(line) for line in result.out.splitlines()]
    assert [one["type"] for one in told] == ["TASK_ASSIGNED", "CHECKPOINT_STATUS"]
    assert told[1]["status"] == "failed" and told[1]["message_type"] == "change"


def test_watching_is_told_in_the_trail_once_for_each_workflow(run: Run, store: Path):
    end(store)
    run("watch", "WF-1", "WF-1", "--store", store)
    log = [json.loads(line) for line in run("audit", "log", "--store", store, "--json").out.splitlines()]
    told = [entry for entry in log if entry["type"] == "EVENTS_READ"]
    assert [(entry["workflow"], entry["data"]) for entry in told] == [("WF-1", {"follow": "yes"})]


def test_a_name_that_is_nearly_right_gets_a_suggestion(run: Run, store: Path):
    result = run("watch", "WF-11", "--store", store)
    assert result.exit_code == Exit.NOT_FOUND and "Did you mean WF-1" in result.err


@pytest.mark.parametrize(
    "args", [("--interval", "0"), ("--until", "later"), ("--notify", "'"), ("--notify", " ")]
)
def test_wrong_input_is_told(run: Run, store: Path, args):
    assert run("watch", "WF-1", "--store", store, *args).exit_code == Exit.USAGE


def test_changes_are_told_as_they_happen_until_the_run_ends(run: Run, store: Path, tmp_path: Path):
    with watching(tmp_path, "WF-1", "--since", "1h", "--store", store, "--json") as process:
        assert process.stdout is not None
        known = [json.loads(process.stdout.readline()) for _ in range(5)]
        with holdfast.open(str(store)) as service:
            service.record_decision("WF-1", "one more", agent_id="late")
        late = json.loads(process.stdout.readline())
        end(store)
        rest = [json.loads(line) for line in process.stdout]
        assert process.wait(30) == Exit.DONE
    assert [one["seq"] for one in known] == [1, 2, 3, 4, 5]
    assert late["agent"] == "late" and rest[-1]["status"] == "completed"


def test_everything_in_a_store_is_watched_until_interrupted(run: Run, store: Path, tmp_path: Path):
    with watching(tmp_path, "--store", store, "--since", "1h") as process:
        assert process.stdout is not None
        told = {process.stdout.readline().split()[2] for _ in range(6)}
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == Exit.INTERRUPTED
    assert told == {"WF-1", "WF-2"}


def test_a_command_is_run_for_each_change_and_its_words_are_its_own(run: Run, store: Path, tmp_path: Path):
    with holdfast.open(str(store)) as service:
        service.append_event("WF-1", "NOTED", agent_id="$(touch evil); `touch evil`")
    end(store)
    program = tmp_path / "told.py"
    program.write_text("import sys; open('told.jsonl', 'a').write(sys.stdin.read()); print(sys.argv[1:])\n")
    notify = f"{sys.executable} {program} '$(touch evil)'"
    result = run("watch", "WF-1", "--store", store, "--since", "1h", "--events", "NOTED", "--notify", notify)
    assert result.exit_code == Exit.DONE
    [told] = [json.loads(line) for line in Path("told.jsonl").read_text().splitlines()]
    assert told["type"] == "NOTED" and told["agent"].startswith("$(touch")
    assert not Path("evil").exists()


def test_a_command_that_fails_is_told_and_watching_goes_on(run: Run, store: Path, monkeypatch):
    end(store)
    asked = ("watch", "WF-1", "--store", store, "--since", "1h", "--events", "TASK_ASSIGNED")
    result = run(*asked, "--notify", "false")
    assert result.exit_code == Exit.DONE and "warning: --notify false: it ended with 1" in result.err
    result = run(*asked, "--notify", "./nowhere")
    assert result.exit_code == Exit.DONE and "No such file" in result.err
    monkeypatch.setattr("holdfast.cli.watch._NOTIFY_SECONDS_MAX", 0.01)
    result = run(*asked, "--notify", "sleep 10")
    assert result.exit_code == Exit.DONE and "longer than" in result.err


@pytest.mark.parametrize("more", [(), ("--local-time", "--color", "never")])
def test_a_table_is_painted_until_the_run_ends(run: Run, store: Path, monkeypatch, more):
    def pause(seconds: float) -> None:
        end(store)

    monkeypatch.setattr("holdfast.cli.watch.is_painted", lambda stream: True)
    monkeypatch.setattr("holdfast.cli.watch.time", SimpleNamespace(sleep=pause))
    result = run("watch", "WF-1", "--store", store, "--since", "1h", *more)
    assert result.exit_code == Exit.DONE
    assert "WORKFLOW" in result.out and "completed" in result.out
    assert "WF-1" in result.out and ("local" in result.out) == bool(more)


def test_a_narrow_terminal_loses_nothing(run: Run, store: Path, monkeypatch):
    end(store)
    monkeypatch.setattr("holdfast.cli.watch.is_painted", lambda stream: True)
    monkeypatch.setenv("COLUMNS", "40")
    shown = run("watch", "WF-1", "--store", store, "--since", "1h").out
    assert re.search(r"^STATUS +completed *$", shown, re.MULTILINE)
    assert re.search(r"^LAST \(UTC\) +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d *$", shown, re.MULTILINE)


def test_a_terminal_shows_a_table_and_is_left_as_it_was(run: Run, store: Path, tmp_path: Path):
    leader, follower = pty.openpty()
    size = {"TERM": "xterm", "COLUMNS": "120", "LINES": "20"}
    with watching(tmp_path, "WF-1", "--since", "1h", "--store", store, stdout=follower, **size) as process:
        os.close(follower)
        seen = _read_until(leader, b"checkpoint 3 was made")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == Exit.INTERRUPTED
    seen += _rest(leader)
    os.close(leader)
    assert b"WORKFLOW" in seen and b"CHECKPOINTS" in seen
    # The cursor that was hidden is shown again.
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")


def _read_until(handle: int, wanted: bytes) -> bytes:
    seen = b""
    for _ in range(200):
        assert select.select([handle], [], [], 30)[0], seen
        seen += os.read(handle, 4096)
        if wanted in seen:
            return seen
    raise AssertionError(seen)


def _rest(handle: int) -> bytes:
    seen = b""
    while select.select([handle], [], [], 0)[0]:
        try:
            piece = os.read(handle, 4096)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    return seen


def test_a_workflow_that_has_ended_is_told_as_such(run: Run, store: Path):
    end(store, failed=False)
    result = run("watch", "WF-1", "--store", store)
    assert (result.exit_code, result.out) == (0, "")
    assert result.err == "WF-1 is completed; nothing happened while it was watched.\n"
    [line] = run("watch", "WF-1", "--store", store, "--json").out.splitlines()
    assert json.loads(line) == {"message_type": "standing", "workflow_id": "WF-1", "status": "completed"}
