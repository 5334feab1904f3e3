"""What the store holds and the trail should tell of, and does not."""

from datetime import UTC, datetime

from holdfast.adapters.memory import MemoryStore
from holdfast.application.audit.untold import untold
from holdfast.domain.audit_entry import AuditEntry
from holdfast.domain.audit_type import AuditType
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from tests.application.copies import copy
from tests.application.services import make_service


def test_a_trail_tells_of_every_workflow_that_is_there():
    store = MemoryStore()
    service = make_service(store)
    made = service.create_checkpoint("A", {"n": 1})
    service.create_checkpoint("B", {"n": 1}, session_id="s-2")
    service.fork_workflow(made, "C")
    service.append_event("ONLY-EVENTS", "NOTED")
    service.flush()
    assert untold(store) == []


def test_what_was_written_while_it_was_off_is_named():
    store = MemoryStore()
    make_service(store).create_checkpoint("TOLD", {"n": 1})
    silent = make_service(store, audit=False)
    silent.create_checkpoint("B", {"n": 1})
    silent.create_checkpoint("A", {"n": 1})
    assert untold(store) == ["A", "B"]
    # The last one counts: it stands on all before it.
    make_service(store).create_checkpoint("A", {"n": 2})
    assert untold(store) == ["B"]


def test_to_read_a_checkpoint_is_not_to_tell_of_it():
    store = MemoryStore()
    made = make_service(store, audit=False).create_checkpoint("A", {"n": 1})
    service = make_service(store)
    service.load_latest("A")
    service.audit.log_event("SEEN", workflow_id="A", facts={"cp_seq": 1, "checksum": made.checksum})
    service.audit.log_event(AuditType.STORE_COPIED, workflow_id="A")
    service.audit.log_event(AuditType.CHECKPOINT_CREATED, workflow_id="A", facts={"checksum": made.checksum})
    service.flush()
    assert untold(store) == ["A"]


def test_what_was_copied_is_told_where_it_comes_from():
    source, target = MemoryStore(), MemoryStore()
    make_service(source).create_checkpoint("A", {"n": 1})
    copy(source, target)
    assert untold(target) == ["A"]
    told = AuditEntry(datetime(2026, 1, 11, tzinfo=UTC), AuditType.STORE_COPIED, "s-1", "A")
    assert target.commit([Commit(NO_WORKFLOW, Head(), audit=(told,))]) == [None]
    assert untold(target) == []
