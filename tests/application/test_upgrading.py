"""Whole stores are brought to the version of the program, with history kept and every step told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast import bootstrap
from holdfast.adapters.memory import MemoryStore
from holdfast.application.app import App
from holdfast.application.commands import AppendEvent
from holdfast.application.service import CheckpointService
from holdfast.application.transport.copying import Copier
from holdfast.application.upgrading import UpgradeOutcome
from holdfast.config import Config
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import STATUS_EVENT, CheckpointStatus, CheckpointType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    CheckpointWriteError,
    KeyDestroyedError,
    LeaseHeldError,
    MigrationFailedError,
    StoreReadOnlyError,
    UnsupportedVersionError,
)
from holdfast.domain.record import Commit, Transition
from holdfast.domain.state import WorkflowState
from tests.application.versions import KINDS, Home, app_of, kept, stored, upgrading


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(request.param, tmp_path)


def fail(service: CheckpointService, name: str, sequence: int) -> None:
    """Let a checkpoint have failed once during a recovery."""
    data = {"status": "failed", "retry_count": 1, "error_message": "it broke", "error_stacktrace": "at 1"}
    command = AppendEvent(name, STATUS_EVENT, data, cp_seq=sequence)
    engine = service._engine
    engine.wait(engine.writer.append(command, transitions=(Transition(sequence, "failed", 1),)))


def test_the_newest_state_of_each_workflow_becomes_a_new_checkpoint_and_history_stays(home: Home) -> None:
    with home.open("1.0.0") as old:
        for name in ("V", "W"):
            for number in range(3):
                old.create_checkpoint(name, {"plan": "ask, decide", "n": number})
        before = {name: stored(old, name) for name in ("V", "W")}
    with home.open("2.0.0") as new:
        done = list(upgrading(new).apply())
        assert [one.workflow_id for one in done] == ["V", "W"]
        for one in done:
            assert one.outcome is UpgradeOutcome.MIGRATED
            assert (one.source, one.target) == ("1.0.0", "2.0.0")
            assert one.steps == ("1.0.0 -> 1.1.0", "1.1.0 -> 2.0.0")
            assert one.checkpoint_id is not None and one.checkpoint_id.sequence == 4
            assert stored(new, one.workflow_id, last=3) == before[one.workflow_id]
            meta = new.list_checkpoints(one.workflow_id)[0]
            assert (meta.id, meta.schema_version) == (one.checkpoint_id, "2.0.0")
            assert new.validate_checkpoint(meta.id).problems == ()
    with home.open(App(schema_version="2.0.0")) as without_steps:
        state = without_steps.load_latest("W")
        assert state is not None
        assert state.context == {"n": 2, "steps": {"ask": {"done": False}, "decide": {"done": False}}}
        assert {one.outcome for one in upgrading(without_steps).apply()} == {UpgradeOutcome.CURRENT}
    with home.open("1.0.0") as old:
        assert old.restore_checkpoint("W@3").context == {"plan": "ask, decide", "n": 2}


def test_a_plan_tries_every_step_and_changes_nothing(home: Home) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("fits", {"plan": "ask"})
        old.create_checkpoint("odd", {"no_plan": 1})
    with home.open("1.1.0") as new, kept(new, "fits"), kept(new, "odd"):
        fits, odd = upgrading(new).plan()
        assert fits.outcome is UpgradeOutcome.READY and fits.checkpoint_id is None
        assert fits.checkpoint_used.sequence == 1
        assert odd.outcome is UpgradeOutcome.FAILED
        assert isinstance(odd.error, MigrationFailedError)


def test_a_workflow_whose_migration_fails_is_as_it_was_and_the_others_are_migrated(home: Home) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("odd", {"no_plan": 1})
        old.create_checkpoint("right", {"plan": "ask"})
    with home.open("1.1.0") as new:
        with kept(new, "odd"):
            odd, right = upgrading(new).apply()
        assert (odd.outcome, right.outcome) == (UpgradeOutcome.FAILED, UpgradeOutcome.MIGRATED)
        new.flush()
        told = [entry.type for entry in new.audit.query_events(workflow="odd")]
        assert AuditType.OPERATION_REFUSED in told and AuditType.SCHEMA_MIGRATED not in told


def test_a_migrated_checkpoint_stands_as_the_one_before_did(home: Home) -> None:
    with home.open("1.0.0") as old:
        first = old.create_checkpoint("W", {"plan": "ask"})
        old.create_checkpoint(
            "W",
            WorkflowState(context={"plan": "ask, act"}, phase=2),
            stage_id="research",
            agent_id="worker-1",
            stage_state={"tags": {"a", "b"}},
            agent_state={"progress": 0.5},
            agent_version="2.1.0",
            resume_handler="app.resume",
            max_retries=7,
            dependent_checkpoint_ids=[first],
            type=CheckpointType.AGENT_START,
        )
        fail(old, "W", 2)
        before = old.get_by_id("W@2")
    with home.open("1.1.0") as new:
        [done] = upgrading(new).apply()
        assert done.error is None
        after = new.get_by_id("W@3")
        assert before is not None and after is not None
        for name in (
            "type",
            "status",
            "stage_state",
            "agent_state",
            "dependent_checkpoint_ids",
            "resume_handler",
            "retry_count",
            "max_retries",
            "error_message",
            "error_stacktrace",
            "session_id",
            "agent_version",
            "scope",
        ):
            assert getattr(after, name) == getattr(before, name), name
        assert after.status is CheckpointStatus.FAILED and after.retry_count == 1
        assert after.parent_checkpoint_id == before.id.uuid
        meta = new.list_checkpoints("W")[0]
        assert (meta.phase, meta.stage_id, meta.agent_id) == (2, "research", "worker-1")
        # The next checkpoint, and the next event, build on it.
        assert new.create_checkpoint("W", {"steps": ["ask"]}).sequence == 4
        assert new.append_event("W", "TASK_DONE").seq == new.events("W")[-1].seq


def test_a_workflow_that_is_erased_before_its_turn_is_told_as_failed_and_the_others_go_on(home: Home) -> None:
    with home.open("1.0.0") as old:
        for name in ("U", "V", "W"):
            old.create_checkpoint(name, {"plan": "ask"})
    with home.open("1.1.0") as new:
        going = upgrading(new).apply(["U", "V", "W"])
        first = next(going)
        new._engine.eraser.workflow("V", reason="asked for")
        second, third = going
        assert (first.outcome, third.outcome) == (UpgradeOutcome.MIGRATED, UpgradeOutcome.MIGRATED)
        assert second.outcome is UpgradeOutcome.FAILED
        assert isinstance(second.error, CheckpointNotFoundError | KeyDestroyedError)


class Watched(MemoryStore):
    """A store that remembers its commits, and fails when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[Commit] = []
        self.fault: Exception | None = None

    def commit(self, commits: Sequence[Commit]) -> list[Exception | None]:
        if self.fault is not None:
            raise self.fault
        self.commits += commits
        return super().commit(commits)


def watched_home() -> Home:
    home = Home("memory", Path())
    home.store = Watched()
    return home


def test_what_happened_after_the_last_checkpoint_is_still_replayed(home: Home, tmp_path: Path) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask"})
        old.record_decision("W", "ask two")
        old.record_decision("W", "ask three")
    with home.open("1.1.0") as new:
        lazily = new.recover_workflow("W").state
        [done] = upgrading(new).apply()
        assert done.checkpoint_id is not None
        result = new.recover_workflow("W")
        assert result.checkpoint_used == done.checkpoint_id and result.warnings == ()
        assert lazily is not None and result.state is not None
        assert [decision["description"] for decision in result.state.decisions] == ["ask two", "ask three"]
        assert result.state.decisions == lazily.decisions
        assert result.state.context == lazily.context == {"steps": ["ask"]}
        kit = new._engine.kit
        copied = bootstrap.open_store(Config(store=f"sqlite:{tmp_path / 'copy.db'}"))
        Copier(kit.store, copied, kit.packer, kit.formats, vault=kit.vault).copy(["W"])
        assert list(copied.entries("W")) == list(kit.store.entries("W"))
        assert list(copied.events("W")) == list(kit.store.events("W"))
        copied.close()
        # The next one knows of everything again.
        new.create_checkpoint("W", result.state)
        assert new.recover_workflow("W").events_replayed == 0


def test_a_workflow_that_ended_has_still_ended(home: Home) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask"}, type=CheckpointType.WORKFLOW_COMPLETE)
        old.create_checkpoint("V", {"plan": "ask"})
        old.append_event("V", "WORKFLOW_COMPLETED")
    with home.open("1.1.0") as new:
        assert {one.outcome for one in upgrading(new).apply()} == {UpgradeOutcome.MIGRATED}
        result = new.recover_workflow("W")
        assert not result.success and "ended" in str(result.validation_errors + result.warnings)
        before, after = new._engine.kit.store.entries("V")
        assert before.event_seq == after.event_seq == 1
        assert [event.type for event in new.events("V", after=1)] == [
            "WORKFLOW_COMPLETED",
            "CHECKPOINT_CREATED",
        ]


def test_a_listing_that_was_lost_is_made_anew_with_versions_and_statuses(tmp_path: Path) -> None:
    home = Home("file", tmp_path)
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask"})
        fail(old, "W", 1)
    with home.open("1.1.0") as new:
        list(upgrading(new).apply())
        before = list(new._engine.kit.store.entries("W"))
    for path in (tmp_path / "store").rglob("manifest.jsonl"):
        path.unlink()
    with home.open("1.1.0") as new:
        assert list(new._engine.kit.store.entries("W")) == before
        assert new.list_checkpoints("W")[0].schema_version == "1.1.0"


def test_a_status_and_its_checkpoint_are_one_commit() -> None:
    home = watched_home()
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask"})
        fail(old, "W", 1)
    with home.open("1.1.0") as new:
        home.store.commits.clear()
        list(upgrading(new).apply())
        [commit] = [one for one in home.store.commits if one.record is not None]
        assert [moved.status for moved in commit.transitions] == ["failed"]
        assert len(commit.events) == 2
        assert [entry.type for entry in commit.audit] == [AuditType.SCHEMA_MIGRATED]


def test_a_migration_is_told_in_the_session_of_whoever_makes_it(home: Home) -> None:
    with home.open("1.0.0", session="work") as old:
        old.create_checkpoint("W", WorkflowState(session_id="work", context={"plan": "ask"}))
    with home.open("1.1.0", session="care", actor="ann") as new:
        [done] = upgrading(new).apply()
        [entry] = new.audit.query_events(event_types=[AuditType.SCHEMA_MIGRATED])
        assert (entry.session_id, entry.workflow_id, entry.actor) == ("care", "W", "ann")
        assert done.checkpoint_id is not None
        assert dict(entry.facts) == {
            "cp_seq": 2,
            "checksum": done.checkpoint_id.checksum,
            "from": "1.0.0",
            "to": "1.1.0",
        }
        assert new.list_checkpoints("W")[0].session_id == "work"


def test_a_workflow_that_somebody_works_on_is_left_to_them(home: Home) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask"})
        old.acquire_lease("W", "worker-1", ttl_seconds=600)
        with home.open("1.1.0") as new, kept(new, "W"):
            [done] = upgrading(new).apply()
            assert isinstance(done.error, LeaseHeldError)


def test_a_state_that_was_recorded_meanwhile_is_not_overwritten(home: Home) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask"})
        app = app_of("2.0.0")

        def slow(fields: dict[str, Any]) -> dict[str, Any]:
            old.create_checkpoint("W", {"plan": "ask, act"})
            return fields

        app.migration("1.0.0", "2.0.0")(slow)
        with home.open(app) as new:
            [done] = upgrading(new).apply()
            assert isinstance(done.error, CheckpointConflictError)
            assert new.list_checkpoints("W")[0].id.sequence == 2


def test_what_is_newer_than_the_program_is_told_by_its_version(home: Home) -> None:
    with home.open("2.0.0") as new:
        new.create_checkpoint("W", {"steps": {}})
    with home.open("1.1.0") as older, kept(older, "W"):
        [done] = upgrading(older).apply()
        assert isinstance(done.error, UnsupportedVersionError)
        assert "2.0.0" in str(done.error) and "1.1.0" in str(done.error)


def test_only_the_workflows_asked_for_are_migrated() -> None:
    home = Home("memory", Path())
    with home.open("1.0.0") as old:
        for name in ("U", "V", "W"):
            old.create_checkpoint(name, {"plan": "ask"})
        old.append_event("events-only", "SAID")
    with home.open("1.1.0") as new:
        assert [one.workflow_id for one in upgrading(new).apply(["W", "U"])] == ["W", "U"]
        assert new.list_checkpoints("V")[0].schema_version == "1.0.0"
        assert [one.workflow_id for one in upgrading(new).plan()] == ["U", "V", "W"]
        with pytest.raises(CheckpointNotFoundError):
            list(upgrading(new).apply(["nobody"]))


def test_secrets_stay_hidden_in_a_migrated_state_and_the_next_checkpoint_is_right(home: Home) -> None:
    with home.open("1.0.0") as old:
        old.create_checkpoint("W", {"plan": "ask", "password": "hunter2-and-more", "n": 1})
    with home.open("1.1.0") as new:
        list(upgrading(new).apply())
        new.create_checkpoint("W", {"steps": ["ask"], "password": "hunter2-and-more", "n": 2})
        with pytest.warns(match="without its secrets"):
            states = [new.restore_checkpoint(f"W@{number}").context for number in (2, 3)]
        assert [state["n"] for state in states] == [1, 2]
        assert states[0]["password"] == states[1]["password"]
        assert "hunter2" not in str(states)


def test_a_fault_of_the_store_ends_the_upgrade() -> None:
    home = watched_home()
    with home.open("1.0.0") as old:
        for name in ("V", "W"):
            old.create_checkpoint(name, {"plan": "ask"})
    for fault in (CheckpointWriteError("the disk is gone"), StoreReadOnlyError("it is read only")):
        with home.open("1.1.0", audit=False) as new:
            home.store.fault = fault
            with pytest.raises(type(fault)):
                list(upgrading(new).apply())
            home.store.fault = None


def test_an_interrupted_upgrade_is_finished_by_another(home: Home) -> None:
    with home.open("1.0.0") as old:
        for name in ("U", "V", "W"):
            old.create_checkpoint(name, {"plan": "ask"})
    with home.open("1.1.0") as new:
        going = upgrading(new).apply()
        assert next(going).outcome is UpgradeOutcome.MIGRATED
    with home.open("1.1.0") as new:
        outcomes = [one.outcome for one in upgrading(new).apply()]
        assert outcomes == [UpgradeOutcome.CURRENT, UpgradeOutcome.MIGRATED, UpgradeOutcome.MIGRATED]
        assert all(new.list_checkpoints(name)[0].id.sequence == 2 for name in ("U", "V", "W"))
