"""What the tests of the command line share: a way to call it, and a small store to call it on."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from holdfast import bootstrap
from holdfast.cli import group
from holdfast.cli.main import main
from holdfast.domain.state import WorkflowState

NOBODY = 65534


def load(name: str) -> click.Command:
    """Load a command by its name, that of its group before it."""
    found: click.Command | None = group.holdfast
    for word in name.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None
    return found


def _every_command() -> Iterator[tuple[str, tuple[str, str]]]:
    for name, told in group.COMMANDS.items():
        yield name, told
        command = load(name)
        if isinstance(command, group.Commands):
            yield from ((f"{name} {inner}", told) for inner, told in command.table.items())


#: Module and summary of every command; those of a group are named with it.
COMMANDS = dict(_every_command())


@dataclass(frozen=True)
class Result:
    """How a call ended."""

    exit_code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        return json.loads(self.err)


Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def path_as_before() -> Iterator[None]:
    """Take folders of programs off the path again: a command ends with its process, and this one goes on."""
    before = list(sys.path)
    yield
    sys.path[:] = before


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Call the command line in this process, away from any store or configuration of the machine."""
    monkeypatch.chdir(tmp_path)
    # Where keys that sign are kept.
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("HOLDFAST_STORE", "HOLDFAST_OUTPUT", "HOLDFAST_PROFILE", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def call(*args: object) -> Result:
        capsys.readouterr()
        exit_code = main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return Result(exit_code, out, err)

    return call


def fill(store: Path, **settings: Any) -> None:
    """Write two workflows: WF-1 with three checkpoints and two events of its own, and WF-2 with one."""
    with bootstrap.open(str(store), **settings) as service:
        state = WorkflowState(total_steps=3, messages=[{"role": "user", "text": "begin"}], context={"a": 1})
        service.create_checkpoint("WF-1", state, stage_id="plan", session_id="s-1")
        service.record_decision("WF-1", "go on", rationale="why not", agent_id="planner")
        state.messages.append({"role": "agent", "text": "caf\u00e9 \u2603"})
        state.current_step = 1
        service.create_checkpoint("WF-1", state, stage_id="work", agent_id="worker-1")
        service.append_event("WF-1", "TASK_ASSIGNED", {"task": "T-1"})
        state.messages.append({"role": "agent", "text": "done"})
        state.current_step = 2
        del state.context["a"]
        service.create_checkpoint("WF-1", state, stage_id="work", agent_id="worker-2")
        service.create_checkpoint("WF-2", {"small": True})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with two workflows."""
    place = tmp_path / "store"
    fill(place)
    return place


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that any user may enter, which pytest's own are not."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Be someone whom file modes bind: root puts on another user's rights for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def damage_record(store: Path, sequence: int) -> Path:
    """Change one letter in the record of a checkpoint of WF-1."""
    for path in store.glob("checkpoints/*/wf-1*/*.deltas.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        for number, line in enumerate(lines):
            if line.startswith(b'{"seq":%d,' % sequence):
                lines[number] = line.replace(b'"ts":"2', b'"ts":"3')
                path.write_bytes(b"".join(lines))
                return path
    raise AssertionError(f"no record {sequence}")


def entries(run: Run, store: object, type: str) -> list[dict[str, Any]]:
    """Read the entries of one type as programs do."""
    lines = run("audit", "log", "--type", type, "--json", "--store", store).out.splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture
def signed(run: Run, store: Path) -> tuple[Path, str]:
    """A store whose trail is signed, and its public key."""
    key = run("audit", "anchor", "--store", store, "--json").data["keys"][0]
    return store, key


def trail_file(store: Path, session: str = "s-1") -> Path:
    """The file that holds the trail of a session."""
    (found,) = store.glob(f"audit/**/{session}*/audit_trail.jsonl")
    return found
