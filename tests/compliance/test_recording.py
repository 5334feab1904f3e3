"""Who did what, when: every change is told with it, every look is told, and nothing is told over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast.application.service import CheckpointService
from holdfast.bootstrap import build_kit, open_store
from holdfast.config import Config
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import CheckpointConflictError
from tests.compliance.openings import entries, open_service, told

#: Each changes the store, and the type of the one entry that tells of it.
CHANGES: dict[str, tuple[Callable[[CheckpointService], object], str]] = {
    "checkpoint": (lambda s: s.create_checkpoint("WF-1", {"n": 99}), AuditType.CHECKPOINT_CREATED),
    "event": (lambda s: s.append_event("WF-1", "SAID"), AuditType.EVENT_RECORDED),
    "decision": (lambda s: s.record_decision("WF-1", "yes"), AuditType.AGENT_DECISION),
    "agent": (lambda s: s.update_agent_state("WF-1", "a", {"x": 1}), AuditType.EVENT_RECORDED),
    "fork": (lambda s: s.fork_workflow("WF-1@latest", "WF-2"), AuditType.WORKFLOW_FORKED),
    "lease": (lambda s: s.acquire_lease("WF-1", "ann"), AuditType.LEASE_ACQUIRED),
    "prune": (lambda s: s.prune_checkpoints("WF-1", 2, 0), AuditType.CHECKPOINTS_PRUNED),
    "delete": (lambda s: s.delete("WF-1@2"), AuditType.CHECKPOINTS_PRUNED),
    "hold": (lambda s: s.holds.place(workflow_id="WF-1", reason="case 1"), AuditType.HOLD_PLACED),
    "subject": (lambda s: s.subjects.declare("WF-1", "alice"), AuditType.SUBJECT_DECLARED),
}


def fill(service: CheckpointService) -> None:
    for n in range(5):
        service.create_checkpoint("WF-1", {"n": n})


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_yields_exactly_one_entry_before_it_returns(url, name):
    change, type = CHANGES[name]
    with open_service(url) as service:
        fill(service)
        before = told(url)
        change(service)
        # Seen by another opening while this one is still at work: it was durable when the call returned.
        assert [entry["type"] for entry in told(url)[len(before) :]] == [type]


CHILD = """
import sys
from tests.compliance.openings import open_service

service = open_service(sys.argv[1])
for n in range(1000):
    service.create_checkpoint("WF-1", {"n": n})
    print(n, flush=True)
"""


@pytest.mark.parametrize("acknowledged", [1, 7, 20])
def test_a_writer_that_is_killed_leaves_change_and_entry_or_neither(url, acknowledged):
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, url], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    assert child.stdout is not None
    with child:
        for _ in range(acknowledged):
            assert child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
    with open_service(url, "s-2") as service:
        stored = {meta.id.sequence: meta.id.checksum for meta in service.list_checkpoints("WF-1", 2000)}
        assert service.audit.verify(payloads=True).faults == ()
    said = {
        entry["data"]["cp_seq"]: entry["data"]["checksum"]
        for entry in entries(url)
        if entry["type"] == AuditType.CHECKPOINT_CREATED
    }
    assert said == stored and len(stored) >= acknowledged


def test_entries_are_dense_however_many_write_at_once(url):
    with open_service(url) as service:

        def work(number: int) -> None:
            for n in range(10):
                service.create_checkpoint(f"WF-{number}", {"n": n}, session_id=f"s-{n % 3}")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        store = service._engine.kit.store
        size = store.integrate()
        places = set()
        for session_id in store.sessions():
            last = store.trail_head(session_id).seq
            places |= {store.place(session_id, seq) for seq in range(1, last + 1)}
            assert len(list(store.trail(session_id))) == last
        assert places == set(range(size))
        assert service.audit.verify().faults == ()


class SteppingClock:
    """Goes back ten days, once."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 1, 11, tzinfo=UTC)

    def now(self) -> datetime:
        self.moment += timedelta(seconds=1)
        return self.moment


def test_an_entry_says_when_who_what_on_what_and_how_it_ended(url):
    with open_service(url) as service:
        service.append_event("WF-1", "TASK_ASSIGNED", agent_id="planner", step_id="step-7")
        with pytest.raises(CheckpointConflictError):
            service.create_checkpoint("WF-1", {"n": 1}, expected_sequence=7)
    assigned, refused = (entry for entry in told(url))
    assert assigned["ts"].endswith("Z")
    assert (assigned["actor"], assigned["agent"], assigned["type"]) == ("ann", "planner", "TASK_ASSIGNED")
    assert (assigned["workflow"], assigned["outcome"], assigned["correlation"]) == (
        "WF-1",
        "success",
        "step-7",
    )
    assert (refused["type"], refused["outcome"]) == ("OPERATION_REFUSED", "refused")


def test_a_clock_that_steps_back_ten_days_is_flagged_and_time_goes_on(url):
    clock = SteppingClock()
    config = Config(store=url, session="s-1", actor="ann", background=False, retain=False)
    with CheckpointService(build_kit(open_store(config), config, clock=clock)) as service:
        service.create_checkpoint("WF-1", {"n": 1})
        clock.moment -= timedelta(days=10)
        service.create_checkpoint("WF-1", {"n": 2})
        report = service.audit.verify()
    assert report.clock_steps >= 1 and report.faults == ()
    times = [entry["ts"] for entry in entries(url)]
    assert times == sorted(times)
    assert any(entry.get("clock", "").startswith("2026-01-01T") for entry in entries(url))


def test_a_correction_appends_and_the_earlier_value_stays_readable(url):
    with open_service(url) as service:
        service.create_checkpoint("WF-1", {"price": 10})
        service.record_decision("WF-1", "pay 10")
        service.create_checkpoint("WF-1", {"price": 12})
        service.record_decision("WF-1", "pay 12", data={"corrects": "pay 10"})
    with open_service(url, "s-2") as service:
        assert service.restore_checkpoint("WF-1@1").context == {"price": 10}
        assert service.restore_checkpoint("WF-1@2").context == {"price": 12}
        found = service.audit.query_events(event_types=["AGENT_DECISION"])
        assert [event.data and event.data["description"] for event in found] == ["pay 10", "pay 12"]


def test_looking_exporting_verifying_keys_and_refusals_are_told(url, tmp_path):
    with open_service(url) as service:
        fill(service)
        service.restore_checkpoint("WF-1@3")
        service.get_by_id("WF-1@3")
        service.events("WF-1")
        service.audit.keeper.anchor(create_key=True)
        service.audit.query_events(session_id="s-1")
        service.audit.verify()
        service.audit.export(tmp_path / "export")
        service.audit.export_report("s-1", "csv")
        service.audit.log_event(AuditType.AUTHENTICATION_FAILED, facts={"token": "unknown"})
        with pytest.raises(CheckpointConflictError):
            service.create_checkpoint("WF-1", {"n": 1}, expected_sequence=77)
    types = [entry["type"] for entry in entries(url)]
    assert {
        "STATE_RESTORED",
        "STATE_READ",
        "EVENTS_READ",
        "TRAIL_READ",
        "TRAIL_VERIFIED",
        "TRAIL_EXPORTED",
        "KEY_CREATED",
        "HEAD_SIGNED",
        "AUTHENTICATION_FAILED",
        "OPERATION_REFUSED",
    } <= set(types)
    assert types.count("TRAIL_EXPORTED") == 2
