"""The machinery behind both faces: commands, upkeep, and what happens at a fork and at the end."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any

import pytest

from holdfast.application.engine import Engine
from holdfast.application.resolve import living
from holdfast.application.retain import PruneResult
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import CheckpointWriteError, InvalidStateError
from holdfast.domain.retention import RetentionPolicy
from holdfast.domain.state import WorkflowState
from holdfast.testing import FailingStore
from tests.application.services import make_kit


def save(engine: Engine, state: dict[str, object]) -> int:
    sequence: int = engine.wait(engine.writer.create(engine.checkpoint_command("W", state, {}))).sequence
    return sequence


def test_the_type_follows_the_scope_unless_given() -> None:
    engine = Engine(make_kit())
    assert engine.checkpoint_command("W", {}, {}).type is CheckpointType.STAGE_COMPLETE
    assert engine.checkpoint_command("W", {}, {"stage_id": "s"}).type is CheckpointType.STAGE_COMPLETE
    assert engine.checkpoint_command("W", {}, {"agent_id": "a"}).type is CheckpointType.AGENT_COMPLETE
    assert engine.checkpoint_command("W", {}, {"type": "error_state"}).type is CheckpointType.ERROR_STATE
    with pytest.raises(InvalidStateError):
        engine.checkpoint_command("W", {}, {"type": "?"})


def test_append_only_fields_of_a_mapping_are_in_the_context() -> None:
    engine = Engine(make_kit())
    assert engine.checkpoint_command("W", {}, {"append_only": ["log"]}).append_only == {"context.log"}
    state = WorkflowState()
    assert engine.checkpoint_command("W", state, {"append_only": ["messages"]}).append_only == {"messages"}


def test_a_flush_says_what_failed_unheard_and_only_once() -> None:
    engine = Engine(make_kit())
    engine.failure = CheckpointWriteError("lost")
    with pytest.raises(CheckpointWriteError, match="lost"):
        engine.flush()
    engine.flush()


def test_pruning_that_removes_nothing_writes_nothing() -> None:
    store = FailingStore()
    engine = Engine(make_kit(store))
    save(engine, {"n": 1})
    store.calls.clear()
    assert int(engine.prune("W", RetentionPolicy())) == 0
    assert store.calls["commit"] == store.calls["remove"] == store.calls["put_keyframe"] == 0


def test_retention_looks_at_a_long_workflow_only_when_it_has_grown_by_a_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.application.engine._LONG_WORKFLOW", 40)
    monkeypatch.setattr("holdfast.application.engine._RETAINED_SHARE", 1)
    engine = Engine(make_kit(retain=True, retain_count=2, retain_days=0))
    looked: list[int] = []
    prune = engine.prune

    def counted(workflow_id: str, policy: RetentionPolicy, **more: Any) -> PruneResult:
        looked.append(engine.kit.store.head("W").sequence)
        return prune(workflow_id, policy, **more)

    monkeypatch.setattr(engine, "prune", counted)
    for step in range(400):
        save(engine, {"n": step, "text": "x" * (step % 7) * 3_000})
    assert len([at for at in looked if at < 40]) > 2
    long = [at for at in looked if at >= 40]
    assert len(long) > 1 and all(later >= 2 * earlier for earlier, later in pairwise(long))


def test_a_hold_that_ends_leaves_nothing_waiting_for_retention(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.application.engine._LONG_WORKFLOW", 10)
    monkeypatch.setattr("holdfast.application.engine._RETAINED_SHARE", 1)
    engine = Engine(make_kit(retain=True, retain_count=2, retain_days=0))
    held = engine.holds.place(workflow_id="W", reason="a lawsuit")
    for step in range(60):
        save(engine, {"n": step, "text": "x" * (step % 7) * 3_000})
    assert len(list(living(engine.kit.store, "W"))) == 60
    engine.holds.release(held.id, reason="it ended")
    # Enough of them for the next keyframe, after which retention looks again.
    for step in range(24):
        save(engine, {"n": step, "text": "y" * (step % 7) * 3_000})
    assert len(list(living(engine.kit.store, "W"))) < 20


def test_however_long_a_workflow_is_retention_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.application.engine._LONG_WORKFLOW", 10)
    monkeypatch.setattr("holdfast.application.engine._RETAINED_SHARE", 1)
    monkeypatch.setattr("holdfast.application.engine._RETAINED_MAX", 20)
    engine = Engine(make_kit(retain=True, retain_count=2, retain_days=0))
    for step in range(300):
        save(engine, {"n": step, "text": "x" * (step % 7) * 3_000})
        assert len(list(living(engine.kit.store, "W"))) < 60


@pytest.mark.sweep
def test_a_forked_child_starts_with_locks_queue_and_memory_of_its_own() -> None:
    program = (
        "import os, sys\n"
        "import holdfast.bootstrap as b\n"
        "s = b.open('memory:')\n"
        "s.create_checkpoint('W', {'n': 1}, wait=False).result()\n"
        "with s._engine.writer.bases.slot('W'):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(s.create_checkpoint('W', {'n': 2}, wait=False).result().sequence)\n"
        "    _, status = os.waitpid(child, 0)\n"
        "print(os.waitstatus_to_exitcode(status), s.create_checkpoint('W', {'n': 3}).sequence)\n"
    )
    assert printed_by(program) == "2 2"


def test_what_is_queued_when_the_process_ends_is_finished_first() -> None:
    program = (
        "import holdfast.bootstrap as b\n"
        "s = b.open('memory:')\n"
        "f = s.create_checkpoint('W', {'a': 1}, wait=False)\n"
        "f.add_done_callback(lambda f: print('durable', f.result()))\n"
    )
    assert printed_by(program) == "durable W@1"


def printed_by(program: str) -> str:
    """Run a program of its own, which must end well and in silence but for what it prints."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.strip()
