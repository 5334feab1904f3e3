"""Payloads that are gone, and what the trail tells of it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.gone_payloads import GonePayloads
from holdfast.domain.log_check import LogReport
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from tests.application.services import make_service
from tests.trails import NOW

PROBLEM = "a payload is gone, and no erasure tells of it"


@pytest.fixture(params=["files", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "store") if request.param == "files" else f"sqlite:{tmp_path / 'store.db'}"


def fill(url: str) -> None:
    with bootstrap.open(url, session="s-1") as service:
        for workflow_id in ("INV-1", "INV-2"):
            service.record_decision(workflow_id, "go on", rationale="why not")
            service.record_decision(workflow_id, "stop", rationale="why not")


def take_all(url: str) -> None:
    """Take all payloads away without a word."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as database, database:
            database.execute("update audit set payload = null")
        return
    for path in Path(url).glob("audit/*/*/payloads.jsonl"):
        path.unlink()


def verified(url: str) -> LogReport:
    with bootstrap.open(url) as service:
        return service.audit.verify(payloads=True)


def test_what_nobody_erased_is_a_fault_of_each_workflow(url: str):
    fill(url)
    assert (verified(url).fault_count, verified(url).payloads) == (0, 4)
    take_all(url)
    report = verified(url)
    assert [(fault.problem, fault.seq) for fault in report.faults] == [(PROBLEM, 3), (PROBLEM, 5)]
    assert report.erased == 4


def test_what_was_erased_is_none(url: str):
    fill(url)
    with bootstrap.open(url) as service:
        service.erasure.workflow("INV-1", reason="it was asked for")
    assert verified(url).fault_count == 0
    take_all(url)
    assert [fault.seq for fault in verified(url).faults] == [5]


def test_what_was_pruned_is_none_and_what_came_later_is():
    store = MemoryStore()
    service = make_service(store, audit_retain_days=0)
    service.record_decision("A", "go on")
    service.audit.prune_payloads(0)
    assert service.audit.verify(payloads=True).fault_count == 0
    service.record_decision("A", "stop")
    last = service.audit.query_events(event_types=["AGENT_DECISION"])[-1]
    store.commit([Commit(NO_WORKFLOW, Head(), erased=((last.session_id, last.seq),))])
    assert [fault.seq for fault in service.audit.verify(payloads=True).faults] == [last.seq]


def test_nonsense_in_an_entry_excuses_nothing():
    gone = GonePayloads()
    entry = {"ts": NOW.isoformat(), "session": "s", "seq": 1, "type": "X", "id": "AE-000001"}
    gone.hear(entry, 0, True)
    for days in ("many", 10**8, None):
        facts = {"type": "PAYLOADS_PRUNED", "data": {"older_than_days": days}}
        gone.hear({**entry, **facts}, 1, False)
    gone.hear({**entry, "type": "DATA_ERASED", "data": {"scope": "subject"}}, 2, False)
    assert [fault.seq for fault in gone.faults()] == [1]
