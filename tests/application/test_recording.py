"""Facts that ride on each other's commits, and taking workflows for a run, over every kind of store."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.app import App
from holdfast.application.commands import AppendEvent
from holdfast.application.commit_queue import Ticket
from holdfast.application.recovery.owners import is_dead, own_name
from holdfast.application.service import CheckpointService
from holdfast.domain.audit_type import AuditType
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointNotFoundError,
    LeaseHeldError,
    LeaseLostError,
    UnsupportedTypeError,
)
from holdfast.domain.progress_report import REPORT_EVENT
from holdfast.domain.record import Commit
from holdfast.domain.state import WorkflowState
from tests.application.services import make_service
from tests.application.shelters import Gated, gated_kit
from tests.application.versions import Home

W = "WF-1"


@pytest.fixture(params=["memory", "sealed", "file", "sqlite"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    return Home(request.param, tmp_path)


def told(number: int) -> AppendEvent:
    return AppendEvent(W, "TOLD", {"n": number})


def newest(service: CheckpointService, workflow_id: str = W) -> WorkflowState:
    state = service.load_latest(workflow_id)
    assert state is not None
    return state


def dead_owner() -> str:
    """Name an owner of this machine that cannot be alive: its process began at another time."""
    owner = own_name("run-1").rpartition(":")[0] + ":1"
    assert is_dead(owner)
    return owner


class Counting(MemoryStore):
    """A store that counts what was written together."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[int] = []

    def commit(self, commits: Any) -> Any:
        written = [one for one in commits if isinstance(one, Commit) and (one.events or one.record)]
        self.groups += [len(written)] if written else []
        return super().commit(commits)


def test_what_is_not_urgent_goes_with_the_next_that_is() -> None:
    store = Counting()
    recording = make_service(store).recording
    quiet = [recording.event(told(number), lambda _: None, is_urgent=False) for number in range(3)]
    assert store.groups == [] and not any(ticket.done for ticket in quiet)
    recording.wait(recording.event(told(3)))
    assert store.groups == [4] and all(ticket.done for ticket in quiet)


def test_events_and_a_checkpoint_are_one_commit_in_their_order(home: Home) -> None:
    with home.open(App()) as service:
        recording = service.recording
        recording.event(told(1), lambda _: None, is_urgent=False)
        ticket = recording.checkpoint(W, WorkflowState(workflow_id=W, tasks=[1]), {})
        assert recording.wait(ticket).sequence == 1
    with home.open(App()) as later:
        assert [event.data for event in later.events(W) if event.type == "TOLD"] == [{"n": 1}]
        assert newest(later).tasks == [1]


def test_a_state_is_read_before_the_call_returns(home: Home) -> None:
    with home.open(App()) as service:
        state = WorkflowState(workflow_id=W, tasks=[1])
        ticket = service.recording.checkpoint(W, state, {})
        state.tasks.append(2)
        service.recording.wait(ticket)
        assert newest(service).tasks == [1]


def test_who_does_not_wait_is_told(home: Home) -> None:
    with home.open(App()) as service:
        done, seen = threading.Event(), list[Ticket]()

        def on_done(ticket: Ticket) -> None:
            seen.append(ticket)
            done.set()

        ticket = service.recording.event(told(1), on_done)
        assert done.wait(30)
        assert seen == [ticket] and ticket.error is None


def test_an_event_is_answered_with_its_values_once(home: Home) -> None:
    data = {"tagged": {"$hf": "mine"}, "pair": (1, 2)}
    with home.open(App()) as service:
        event = service.recording.wait(service.recording.event(AppendEvent(W, "TOLD", data)))
        assert event.data == data and event.data["pair"] is not data["pair"]
        assert next(iter(service.events(W))).data == data


def test_what_cannot_be_stored_is_refused_at_once(home: Home) -> None:
    with home.open(App()) as service:
        with pytest.raises(UnsupportedTypeError, match="object"):
            service.recording.event(AppendEvent(W, "TOLD", {"it": object()}))
        assert not service.recording.exists(W)


def test_a_workflow_exists_from_its_first_event_on(home: Home) -> None:
    with home.open(App()) as service:
        assert not service.recording.exists(W)
        service.append_event(W, "TOLD", {})
        assert service.recording.exists(W)


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_only_a_workflow_that_ended_has_a_last_state(home: Home, status: str) -> None:
    with home.open(App()) as service:
        recording = service.recording
        assert recording.ended(W) is None
        service.create_checkpoint(W, {"n": 1})
        assert recording.ended(W) is None
        final = WorkflowState(workflow_id=W, status=status, tasks=["done"], resumable=False)
        service.create_checkpoint(W, final, type=CheckpointType.WORKFLOW_COMPLETE)
        ended = recording.ended(W)
        assert ended is not None and (ended.status, ended.tasks) == (status, ["done"])


def test_a_workflow_is_taken_by_one_at_a_time(home: Home) -> None:
    with home.open(App()) as service:
        lease = service.recording.take(W, "run", 30)
        with home.open(App()) as other, pytest.raises(LeaseHeldError):
            other.recording.take(W, "run", 30)
        # Also within one process: two runs of it are two owners.
        with pytest.raises(LeaseHeldError):
            service.recording.take(W, "run", 30)
        service.recording.give_up(lease)
        assert service.recording.take(W, "run", 30).token == lease.token + 1


def test_a_lease_gets_new_time_until_it_is_given_up(home: Home) -> None:
    with home.open(App()) as service:
        lease = service.recording.take(W, "run", 30)
        renewed = service.recording.renew(lease, 3000)
        assert renewed.token == lease.token and renewed.expires_at > lease.expires_at
        service.recording.give_up(lease)
        with pytest.raises(LeaseLostError):
            service.recording.renew(lease, 30)
        # Twice is no error.
        service.recording.give_up(lease)


def test_the_lease_of_a_process_that_died_is_ended_and_told(home: Home) -> None:
    with home.open(App()) as service:
        owner = dead_owner()
        service.acquire_lease(W, owner, ttl_seconds=3000)
        lease = service.recording.take(W, "run", 30)
        assert lease.owner.startswith("run-") and not is_dead(lease.owner)
        [entry] = service.audit.query_events(event_types=[AuditType.LEASE_RELEASED])
        assert (entry.workflow_id, entry.facts["owner"]) == (W, owner)


def test_an_owner_of_another_kind_may_be_alive(home: Home) -> None:
    with home.open(App()) as service:
        service.acquire_lease(W, "somebody", ttl_seconds=3000)
        with pytest.raises(LeaseHeldError, match="somebody"):
            service.recording.take(W, "run", 30)


def test_of_many_who_take_at_once_one_gets_it(home: Home) -> None:
    with home.open(App()) as service:
        service.acquire_lease(W, dead_owner(), ttl_seconds=3000)
        begin, got, refused = threading.Barrier(8), list[Any](), list[Exception]()

        def take() -> None:
            begin.wait(30)
            try:
                got.append(service.recording.take(W, "run", 30))
            except LeaseHeldError as problem:
                refused.append(problem)

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert (len(got), len(refused)) == (1, 7)


def test_the_newest_state_comes_back_with_the_events_after_it(home: Home) -> None:
    with home.open(App()) as service:
        service.create_checkpoint(W, {"n": 1})
        service.append_event(W, "CONTEXT_UPDATED", {"context": {"m": 2}})
        service.recording.take(W, "run", 30)
        recovered = service.recording.recover(W)
        assert recovered.success and recovered.state is not None
        assert recovered.state.context == {"n": 1, "m": 2}


def begun(service: CheckpointService) -> list[Any]:
    return [service.create_checkpoint(W, {"n": number}) for number in range(2)]


def test_a_checkpoint_is_the_last_one_or_it_is_not(home: Home) -> None:
    with home.open(App()) as service:
        first, last = begun(service)
        assert service.recording.locate(first) == (W, False)
        assert service.recording.locate(str(last)) == (W, True)
        with pytest.raises(CheckpointNotFoundError):
            service.recording.locate("WF-1@9")


def test_a_fork_begins_with_an_edited_state_and_leaves_the_first_alone(home: Home) -> None:
    with home.open(App()) as service:
        first, _ = begun(service)

        def edit(fields: dict[str, Any]) -> dict[str, Any]:
            return {**fields, "context": {**fields["context"], "edited": True}}

        made = service.recording.fork(first, "WF-2", edit)
        assert made.workflow_id == "WF-2"
        assert newest(service, "WF-2").context == {"n": 0, "edited": True}
        assert newest(service).context == {"n": 1}
        with pytest.raises(CheckpointConflictError):
            service.recording.fork(first, "WF-2", edit)


def test_the_time_is_that_of_the_service(home: Home) -> None:
    with home.open(App()) as service:
        assert service.recording.now() < service.recording.now()


def test_a_workflow_is_not_given_up_while_something_of_it_waits_for_the_store() -> None:
    gated = Gated(gated_kit(spare=False))
    recording = gated.service.recording
    lease = recording.take(W, "run", 3000)
    gated.gate.takes = "nothing"
    assert not recording.wait(recording.event(told(1))).durable
    recording.give_up(lease)
    # Whoever came now would not see what waits.
    assert gated.gate.lease(W) is not None
    gated.gate.takes = "everything"
    recording.give_up(lease)
    assert gated.gate.lease(W) is None
    assert [event.data for event in gated.service.events(W) if event.type == "TOLD"] == [{"n": 1}]


def test_what_people_shall_read_comes_into_the_report(tmp_path: Path) -> None:
    with Home("file", tmp_path).open(App()) as service:
        section = {"title": "Kelp", "summary": "It grows.", "citations": []}
        recording = service.recording
        recording.report([recording.wait(recording.event(AppendEvent(W, REPORT_EVENT, section)))])
        assert "Kelp" in service.progress.text(W)


def test_a_value_as_it_is_stored_shares_nothing_with_the_one_that_was_given(home: Home) -> None:
    given = {"list": [1], "pair": (1, {2})}
    with home.open(App()) as service:
        stored = service.recording.as_stored(given)
        assert stored == given and stored["list"] is not given["list"]


def test_names_that_redaction_hides_or_hides_something_behind_are_told_from_others() -> None:
    names = ("token", "api_key", "plan", "token: 7e391782-1708-421f-bb6b", "")
    hides = make_service(MemoryStore()).recording.hides
    assert [hides(name) for name in names] == [True, True, False, True, False]
    assert not any(map(make_service(MemoryStore(), redact=False).recording.hides, names))
