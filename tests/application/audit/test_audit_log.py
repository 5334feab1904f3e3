"""Writing, finding and verifying entries over a store."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.export_source import ExportSource
from holdfast.domain.audit_entry import AuditRecord
from holdfast.domain.audit_type import AuditType, Outcome
from holdfast.domain.errors import (
    CheckpointNotFoundError,
    ChecksumMismatchError,
    ConfigError,
    InvalidIdError,
    InvalidStateError,
)
from holdfast.domain.log_check import Level, Verdict
from holdfast.domain.note import parse_note
from holdfast.domain.trail import decode_entry
from holdfast.domain.treehead import parse_head
from tests.application.logs import WITNESS, Desk, OneKey, anchored, make_desk, replace_signing

START = datetime(2026, 1, 11, 12, tzinfo=UTC)


def last_of(desk: Desk, session_id: str = "here") -> AuditRecord:
    assert isinstance(desk.store, MemoryStore)
    return desk.store._trails[session_id][-1]


def noted(desk: Desk) -> list[str]:
    desk.trail.flush()
    return [decode_entry(line, None).type for line in desk.store.trail("here")]


def test_an_event_of_the_application_is_found_again_with_its_payload() -> None:
    desk = make_desk()
    name = desk.log.log_event(
        "LOAN_DECIDED",
        session_id="s-9",
        workflow_id="W",
        agent="underwriter",
        outcome=Outcome.REFUSED,
        correlation_id="c-1",
        facts={"amount": 5},
        payload={"why": ["income", 1.5, None]},
    )
    [event] = desk.log.query_events(event_types=["LOAN_DECIDED"])
    assert (event.id, event.seq, event.session_id, event.actor) == (name, 2, "s-9", "ann")
    assert (event.workflow_id, event.agent, event.outcome) == ("W", "underwriter", "refused")
    assert (event.correlation_id, event.facts, event.data) == (
        "c-1",
        {"amount": 5},
        {"why": ["income", 1.5, None]},
    )
    assert event.line == list(desk.store.trail("s-9"))[1]


def test_an_event_belongs_to_the_session_of_the_opening_by_default() -> None:
    desk = make_desk()
    desk.log.log_event("NOTED")
    assert noted(desk) == ["SESSION_STARTED", "NOTED"]


def test_what_cannot_be_an_entry_is_refused() -> None:
    desk = make_desk()
    with pytest.raises(InvalidStateError):
        desk.log.log_event("not in capitals")
    with pytest.raises(InvalidIdError):
        desk.log.log_event("NOTED", session_id="\n")
    with pytest.raises(ConfigError, match="switched off"):
        make_desk(audit=False).log.log_event("NOTED")


@pytest.fixture(scope="module")
def busy() -> Desk:
    desk = make_desk()
    desk.tell(6, "s-1")
    desk.tell(4, "s-2", first=6)
    desk.log.log_event("LOAN_DECIDED", session_id='s "3"', workflow_id="W0", outcome=Outcome.FAILURE)
    return desk


def numbers(desk: Desk, **query: object) -> list[object]:
    found = desk.log.query_events(**query)
    return [event.facts.get("n", event.type) for event in found if event.type != "SESSION_STARTED"]


QUERIES = [
    ({"session_id": "s-2", "event_types": ["AGENT_DECISION"]}, [6, 7, 8, 9]),
    ({"session_id": "s-3"}, []),
    ({"session_id": 's "3"', "event_types": ["LOAN_DECIDED"]}, ["LOAN_DECIDED"]),
    ({"event_types": [AuditType.AGENT_DECISION], "workflow": "W1"}, [1, 3, 5, 7, 9]),
    ({"event_types": ["LOAN_DECIDED", "NOTHING"]}, ["LOAN_DECIDED"]),
    ({"agent": "planner", "limit": 3}, [0, 1]),
    ({"agent": "planner", "limit": 2, "newest": True}, [8, 9]),
    ({"agent": "plan"}, []),
    ({"actor": "ann", "event_types": ["AGENT_DECISION"], "limit": 1}, [0]),
    ({"actor": "bob"}, []),
    ({"outcome": "failure"}, ["LOAN_DECIDED"]),
    ({"agent": "planner", "after": START + timedelta(seconds=7)}, [8, 9]),
    ({"agent": "planner", "before": START + timedelta(seconds=2)}, [0, 1]),
    ({"agent": "planner", "after": START, "before": START + timedelta(seconds=3)}, [1, 2]),
    ({"workflow": "W0", "outcome": "failure"}, ["LOAN_DECIDED"]),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES, ids=str)
def test_entries_are_found_by_what_they_have(
    busy: Desk, query: dict[str, object], expected: list[object]
) -> None:
    assert numbers(busy, **query) == expected


def test_everything_is_found_in_the_order_of_the_log(busy: Desk) -> None:
    found = [event.line for event in busy.log.query_events()]
    assert found == list(busy.store.leaves())[: len(found)]


def test_looking_is_told() -> None:
    desk = make_desk()
    desk.tell(2)
    desk.log.query_events(session_id="s-1")
    assert noted(desk)[-1] == AuditType.TRAIL_READ
    assert decode_entry(last_of(desk).data, None).facts == {"entries": 3, "session": "s-1"}


def test_an_erased_payload_is_none_and_the_entry_stays() -> None:
    desk = make_desk()
    desk.tell(2)
    told = desk.trail.told("DATA_ERASED", workflow_id="W0", facts={"scope": "workflow"})
    desk.trail.commit(told, {}, erased=(("s-1", 2),))
    first, second = desk.log.query_events(event_types=["AGENT_DECISION"])
    assert (first.data, str(first.state), second.data) == (
        None,
        "erased",
        {"decision": "approve", "number": 1},
    )
    report = desk.log.verify(payloads=True)
    assert (report.faults, report.payloads, report.erased) == ((), 1, 1)


def tamper(desk: Desk, index: int, old: bytes, new: bytes) -> None:
    store = desk.store
    assert isinstance(store, MemoryStore)
    record = store._leaves[index]
    changed = AuditRecord(
        record.id, record.head, record.data.replace(old, new), record.payload.replace(old, new)
    )
    store._leaves[index] = changed
    store._trails[record.head.session_id][record.head.seq - 1] = changed


def test_what_was_changed_is_not_returned() -> None:
    desk = make_desk()
    desk.tell(2)
    tamper(desk, 1, b"approve", b"decline")
    with pytest.raises(ChecksumMismatchError):
        desk.log.query_events()


def test_a_chain_is_verified_by_itself() -> None:
    desk = make_desk()
    desk.tell(5)
    assert desk.log.verify_chain_integrity("s-1") == (True, None)
    assert desk.log.verify_chain_integrity("nobody") == (True, None)
    tamper(desk, 3, b'"n":2', b'"n":7')
    assert desk.log.verify_chain_integrity("s-1") == (False, "AE-000004")
    assert sorted(noted(desk)[-2:]) == [AuditType.INTEGRITY_FAILED, AuditType.TRAIL_VERIFIED]


def test_a_changed_payload_breaks_its_chain_and_a_line_without_id_is_named_by_its_number() -> None:
    desk = make_desk()
    desk.tell(5)
    tamper(desk, 2, b"approve", b"decline")
    assert desk.log.verify_chain_integrity("s-1") == (False, "AE-000003")
    tamper(desk, 1, b'{"id"', b'{"ID"')
    assert desk.log.verify_chain_integrity("s-1") == (False, "line 2")


def test_the_level_says_what_was_believed() -> None:
    desk = make_desk(key=False)
    desk.tell(5)
    assert desk.log.verify().level is Level.CHAIN
    head = parse_head(parse_note(anchored(desk)).text)
    desk.tell(1)
    report = desk.log.verify()
    assert (report.level, report.signed_size) == (Level.SIGNED, head.size)
    # The head itself is told, and the verification before, and what came since.
    assert report.tail == report.head.size - head.size > 0
    assert desk.log.verify(desk.log.trust(pins=[head])).level is Level.PINNED
    assert report.verdict(Level.PINNED) is Verdict.INCONCLUSIVE


def test_a_verification_is_told_with_its_level() -> None:
    desk = make_desk()
    desk.tell(5)
    anchored(desk)
    desk.log.verify()
    assert noted(desk)[-1] == AuditType.TRAIL_VERIFIED
    facts = decode_entry(last_of(desk).data, None).facts
    assert facts == {"level": "signed head", "size": 8, "entries": 8, "faults": 0}


def test_what_a_verification_finds_is_on_the_disk_at_once() -> None:
    desk = make_desk()
    desk.tell(5)
    tamper(desk, 3, b'"n":2', b'"n":7')
    report = desk.log.verify()
    assert report.verdict() is Verdict.FAILED
    entry = decode_entry(last_of(desk).data, None)
    assert (entry.type, entry.outcome) == (AuditType.INTEGRITY_FAILED, "failure")
    assert entry.facts == {"kind": "entry", "place": "audit entry 4 (AE-000004) of session 's-1'"}


def test_a_key_that_is_kept_here_is_believed_before_those_in_the_store() -> None:
    desk = make_desk()
    desk.tell(5)
    anchored(desk)
    own = desk.keeper.own_key()
    assert own is not None and desk.log.trust().log_keys == (own,)
    elsewhere = replace_signing(desk, OneKey(is_there=False))
    assert elsewhere.log.trust().log_keys == desk.keeper.keys() == (own,)
    assert desk.log.trust(vkeys=[WITNESS.key]).log_keys == (WITNESS.key,)


def test_where_nothing_checks_signatures_only_chains_count() -> None:
    desk = make_desk()
    desk.tell(5)
    anchored(desk)
    plain = replace_signing(desk, None)
    assert plain.log.verify().level is Level.CHAIN
    with pytest.raises(ConfigError, match="signatures cannot be checked"):
        plain.log.trust(vkeys=[WITNESS.key])


def test_progress_is_told_up_to_the_end() -> None:
    desk = make_desk()
    desk.tell(10)
    seen: list[tuple[int, int]] = []
    desk.log.verify(on_progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (11, 11)


def test_an_export_covers_its_own_telling(tmp_path: Path) -> None:
    desk = make_desk()
    desk.tell(5)
    anchored(desk)
    result = desk.log.export(tmp_path / "whole")
    report = ExportSource(tmp_path / "whole").verify(desk.log.trust())
    assert (report.verdict(Level.SIGNED), report.entries, report.tail) == (Verdict.OK, result.entries, 0)
    assert noted(desk) == ["SESSION_STARTED", AuditType.TRAIL_EXPORTED]
    result = desk.log.export(tmp_path / "one", "s-1", include_payloads=False)
    assert (result.session_id, result.entries) == ("s-1", 6)
    with pytest.raises(CheckpointNotFoundError):
        desk.log.export(tmp_path / "none", "s-2")


def test_reports_are_made_in_every_format() -> None:
    desk = make_desk()
    desk.tell(3)
    lines = desk.log.export_report("s-1", "jsonl").splitlines()
    assert len(lines) == 4 and json.loads(lines[1])
    assert desk.log.export_report("s-1", "csv").count(b"AGENT_DECISION") == 3
    page = desk.log.export_report("s-1", "html")
    assert b"<html" in page and b"The verification is of the whole log" in page
    assert noted(desk)[-1] == AuditType.TRAIL_EXPORTED
    with pytest.raises(ConfigError):
        desk.log.export_report("s-1", "pdf")
    with pytest.raises(CheckpointNotFoundError):
        desk.log.export_report("s-2", "csv")


def test_what_an_application_calls_a_secret_is_hidden_in_its_facts() -> None:
    with bootstrap.open("memory:", background=False) as service:
        service.audit.log_event("LOGIN", facts={"password": "hunter2", "attempt": 3})
        [event] = service.audit.query_events(event_types=["LOGIN"])
        assert str(event.facts["password"]).startswith("[REDACTED:password:")
        assert event.facts["attempt"] == 3


@pytest.mark.parametrize("name", ["", "x" * 600, "\ud800"])
def test_asking_for_what_cannot_be_a_name_leaves_the_trail_writable(name: str) -> None:
    desk = make_desk()
    for asking in (
        lambda: desk.log.query_events(workflow=name),
        lambda: desk.log.query_events(name),
        lambda: desk.log.verify_chain_integrity(name),
    ):
        with pytest.raises(InvalidIdError):
            asking()
    desk.log.log_event("NOTED")
    assert noted(desk)[-1] == "NOTED"


def test_a_log_that_ends_before_what_the_key_signed_is_told() -> None:
    desk = make_desk()
    desk.tell(2)
    anchored(desk)
    assert desk.log.verify().fault_count == 0
    older = replace_signing(make_desk(), desk.kit.signing)
    older.tell(1)
    anchored(replace_signing(older, OneKey()))
    report = older.log.verify()
    assert [fault.kind for fault in report.faults] == ["memory"] and report.level is Level.SIGNED


def test_a_remembered_head_that_is_none_is_left_to_whoever_signs() -> None:
    desk = make_desk()
    desk.tell(2)
    anchored(desk)
    assert isinstance(desk.kit.signing, OneKey)
    desk.kit.signing.remember(desk.keeper.known_origin(), b"nonsense")
    assert desk.log.verify().fault_count == 0
