"""The journal of a step that runs elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast import CheckpointService
from holdfast.domain.errors import CheckpointRecoveryError
from holdfast.domain.ids import MAX_ID_CHARS, check_workflow_id
from holdfast.domain.run_events import AGENT_COMPLETED, AGENT_FAILED, AGENT_STARTED
from holdfast.execution.engines.port import WorkerLostError
from holdfast.execution.frame import Frame
from holdfast.execution.journal import Fact, Journal
from holdfast.execution.remote.child import Child, child_name, recovered
from holdfast.execution.remote.errand import Errand
from holdfast.execution.remote.working import run_errand
from tests.execution.engines.elsewhere import store_in

names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=60)


@pytest.fixture
def service(tmp_path: Path) -> Any:
    with holdfast.open(store_in(tmp_path)) as service:
        yield service


@pytest.fixture
def parent(service: CheckpointService) -> Journal:
    service.create_checkpoint("WF-1", {})
    return Journal(service.recording, "WF-1", {})


def errand(service: CheckpointService, tmp_path: Path, number: str = "e-1") -> Errand:
    frame = Frame("far", "far", "far")
    return Errand(number, store_in(tmp_path), "WF-1~far", "WF-1", frame, lambda ctx: 7, False)


def test_a_step_is_named_after_its_run() -> None:
    assert child_name("WF-1", "research[3]") == "WF-1~research[3]"


def test_a_name_that_would_be_none_has_a_hash_in_its_place() -> None:
    long = child_name("WF-1", f"research[{'x' * 300}]")
    assert long.startswith("WF-1~") and len(long) < 40
    assert len(child_name("w" * MAX_ID_CHARS, "research")) <= MAX_ID_CHARS
    assert check_workflow_id(child_name("WF-1", "research[a\nb]"))


@given(names, names, names, names)
def test_different_steps_have_different_names(one: str, its: str, other: str, others: str) -> None:
    assert (child_name(one, its) == child_name(other, others)) == ((one, its) == (other, others))
    assert check_workflow_id(child_name(one, its))


def test_two_ways_to_cut_one_text_are_two_names() -> None:
    assert child_name("a~b", "c") != child_name("a", "b~c")


def test_a_child_that_was_not_sent_is_not_there(service: CheckpointService, parent: Journal) -> None:
    child = Child(parent, "far")
    look = child.look()
    assert (look.is_held, look.is_gone, look.event_seq, child.ended()) == (False, False, 0, None)
    with pytest.raises(CheckpointRecoveryError):
        recovered(service.recording, child.id)


def test_a_child_that_was_sent_waits_for_whoever_takes_it(
    service: CheckpointService, parent: Journal, tmp_path: Path
) -> None:
    child = Child(parent, "far")
    child.send(errand(service, tmp_path))
    look = child.look()
    assert (look.is_held, look.is_gone) == (False, False)
    started = [event.data for event in child.events(0) if event.type == AGENT_STARTED]
    assert started == [{"attempt": 1, "errand": "e-1"}]
    assert child.events(look.event_seq) == []


def test_who_worked_on_it_is_fenced_off_by_the_next_sending(
    service: CheckpointService, parent: Journal, tmp_path: Path
) -> None:
    child = Child(parent, "far")
    child.send(errand(service, tmp_path))
    with holdfast.open(store_in(tmp_path)) as worker:
        worker.acquire_lease(child.id, "worker", ttl_seconds=60)
        assert child.look().is_held
        child.send(errand(service, tmp_path, "e-2"))
        with pytest.raises(holdfast.LeaseLostError):
            worker.append_event(child.id, "LATE")


def test_a_worker_whose_lease_is_over_is_gone(
    service: CheckpointService, parent: Journal, tmp_path: Path
) -> None:
    child = Child(parent, "far")
    child.send(errand(service, tmp_path))
    with holdfast.open(store_in(tmp_path)) as worker:
        worker.acquire_lease(child.id, "worker", ttl_seconds=0)
        look = child.look()
        assert (look.is_held, look.is_gone) == (False, True)


def test_an_errand_that_was_taken_back_is_not_carried_out(
    service: CheckpointService, parent: Journal, tmp_path: Path
) -> None:
    child, sent = Child(parent, "far"), errand(service, tmp_path)
    child.send(sent)
    child.withdraw(sent, ends=False)
    assert run_errand(sent).reason == "the run has taken the errand back"


def test_what_ended_is_not_taken_back(service: CheckpointService, parent: Journal, tmp_path: Path) -> None:
    child, sent = Child(parent, "far"), errand(service, tmp_path)
    child.send(sent)
    run_errand(sent)
    child.withdraw(sent, ends=True)
    ended = child.ended()
    assert ended is not None and ended.status == "completed"


def finished_just_before(child: Child, sent: Errand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the worker record its result in the last moment before it is fenced off."""
    take = child._taken

    @contextmanager
    def taken() -> Iterator[None]:
        run_errand(sent)
        with take():
            yield

    monkeypatch.setattr(child, "_taken", taken)


def test_what_ends_while_it_is_taken_back_stays_ended(
    service: CheckpointService, parent: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child, sent = Child(parent, "far"), errand(service, tmp_path)
    child.send(sent)
    finished_just_before(child, sent, monkeypatch)
    child.withdraw(sent, ends=False)
    assert AGENT_FAILED not in [event.type for event in child.events(0)]
    ended = child.ended()
    assert ended is not None and ended.status == "completed"


def test_what_ends_while_it_is_sent_again_is_not_begun_again(
    service: CheckpointService, parent: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child, sent = Child(parent, "far"), errand(service, tmp_path)
    assert child.send(sent)
    finished_just_before(child, sent, monkeypatch)
    assert not child.send(errand(service, tmp_path, "e-2"))
    assert [event.type for event in child.events(0)].count(AGENT_STARTED) == 1


def killed_after_its_result(service: CheckpointService, child: Child) -> None:
    """Leave what a worker leaves that dies between its result and the checkpoint that ends its journal."""
    data = {"attempt": 1, "result": 7, "duration_seconds": 0.1}
    recovered(service.recording, child.id).commit(Fact(AGENT_COMPLETED, data, "far", "far"))


@pytest.mark.parametrize("is_sent_again", [True, False])
def test_a_result_counts_although_its_worker_could_not_end_the_journal(
    service: CheckpointService, parent: Journal, tmp_path: Path, is_sent_again: bool
) -> None:
    child, sent = Child(parent, "far"), errand(service, tmp_path)
    child.send(sent)
    killed_after_its_result(service, child)
    assert child.ended() is None
    if is_sent_again:
        assert not child.send(errand(service, tmp_path, "e-2"))
    else:
        child.withdraw(sent, ends=False)
    types = [event.type for event in child.events(0)]
    assert AGENT_FAILED not in types and types.count(AGENT_STARTED) == 1
    ended = child.ended()
    assert ended is not None and ended.status == "completed"
    assert [task["result"] for task in ended.tasks] == [7]


def test_a_run_that_was_taken_over_takes_nothing_back(
    service: CheckpointService, parent: Journal, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    child, sent = Child(parent, "far"), errand(service, tmp_path)
    child.send(sent)
    lease = service.acquire_lease("WF-1", "me")
    with holdfast.open(store_in(tmp_path)) as other:
        other.release_lease(lease)
        other.acquire_lease("WF-1", "another")
        child.withdraw(sent, ends=True)
    assert "could not be fenced off" in caplog.text
    assert child.ended() is None


def test_who_is_faster_than_the_run_is_told_as_a_lost_worker(
    service: CheckpointService, parent: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = Child(parent, "far")
    child.send(errand(service, tmp_path))
    with holdfast.open(store_in(tmp_path)) as worker:
        take = service.recording.__class__.take

        def late(recording: Any, *given: Any) -> Any:
            worker.acquire_lease(child.id, "worker", ttl_seconds=60)
            return take(recording, *given)

        monkeypatch.setattr(service.recording.__class__, "take", late)
        with pytest.raises(WorkerLostError, match="has the workflow for itself"):
            child.send(errand(service, tmp_path, "e-2"))


def test_what_the_run_knows_of_a_step_goes_into_a_new_child(
    service: CheckpointService, tmp_path: Path
) -> None:
    state = {"milestone": {"name": "half", "state": 1}}
    service.create_checkpoint("WF-1", {})
    child = Child(Journal(service.recording, "WF-1", {"agent_states": {"far": state}}), "far")
    child.send(errand(service, tmp_path))
    latest = service.load_latest(child.id)
    assert latest is not None and latest.agent_states["far"]["milestone"]["name"] == "half"
    assert latest.metadata == {"parent": "WF-1", "step": "far"}
