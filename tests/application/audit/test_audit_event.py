"""An entry is given with its payload, as far as that is there and can be opened."""

from __future__ import annotations

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.audit_event import open_event
from holdfast.domain.audit_entry import AuditRecord
from holdfast.domain.errors import ChecksumMismatchError
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from tests.application.logs import make_desk, outcomes


def test_an_event_has_all_that_its_line_says() -> None:
    desk = make_desk()
    desk.tell(1)
    start, line = desk.store.trail("s-1")
    event = open_event(desk.kit, line)
    assert (event.id, event.seq, event.type, event.session_id) == ("AE-000002", 2, "AGENT_DECISION", "s-1")
    assert (event.data, str(event.state)) == ({"decision": "approve", "number": 0}, "opened")
    assert event.prev_hash == open_event(desk.kit, start).hash and event.line == line
    assert event.commitment.startswith("sha256:") and event.clock is None
    first = open_event(desk.kit, start)
    assert (first.data, str(first.state), first.commitment) == (None, "none", "")


def test_what_was_erased_is_told_from_what_never_was() -> None:
    desk = make_desk()
    desk.tell(1)
    outcomes(desk.store.commit([Commit(NO_WORKFLOW, Head(), erased=(("s-1", 2),))]))
    event = open_event(desk.kit, list(desk.store.trail("s-1"))[1])
    assert (event.data, str(event.state)) == (None, "erased")


def test_a_payload_that_is_another_is_not_given() -> None:
    desk = make_desk()
    desk.tell(2)
    store = desk.store
    assert isinstance(store, MemoryStore)
    one, other = store._trails["s-1"][1:]
    store._trails["s-1"][1] = AuditRecord(one.id, one.head, one.data, other.payload)
    with pytest.raises(ChecksumMismatchError):
        open_event(desk.kit, one.data)
