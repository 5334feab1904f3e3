"""Records of sessions are found, checked and replaced; who was slower is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.service import CheckpointService
from holdfast.application.session_files import SessionFiles
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import (
    CheckpointConflictError,
    CheckpointCorruptError,
    CheckpointNotFoundError,
    ChecksumMismatchError,
    StoreDamageWarning,
)
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.domain.session_context import SessionContext
from holdfast.domain.session_record import Session, SessionStatus, file_of
from tests.application.services import make_service

SESSION = Session("s-1", SessionStatus.OPEN, SessionContext("s-1", workflow_ids=("W",)))


@pytest.fixture
def store() -> Any:
    return MemoryStore()


@pytest.fixture
def service(store: Any) -> CheckpointService:
    return make_service(store, session="here")


@pytest.fixture
def files(service: CheckpointService) -> SessionFiles:
    return SessionFiles(service._engine.kit, service._engine.trail)


def test_a_record_is_written_once_and_then_replaced(files):
    [written] = files.commit(AuditType.SESSION_STARTED, [(SESSION, None)])
    stored = files.load("s-1")
    assert stored.session == written
    assert files.exists("s-1") and not files.exists("s-2")
    with pytest.raises(CheckpointConflictError):
        files.commit(AuditType.SESSION_STARTED, [(SESSION, None)])
    ended = replace(written, status=SessionStatus.HANDED_OFF)
    [ended] = files.commit(AuditType.SESSION_HANDED_OFF, [(ended, stored.data)])
    assert files.listing() == [ended]
    with pytest.raises(CheckpointConflictError):
        files.commit(AuditType.SESSION_CLOSED, [(ended, stored.data)])
    assert files.confirmed("s-1").session == ended


def test_of_two_records_both_or_none_is_written(files):
    files.commit(AuditType.SESSION_STARTED, [(SESSION, None)])
    other = replace(SESSION, id="s-2", context=SessionContext("s-2"))
    with pytest.raises(CheckpointConflictError):
        files.commit(AuditType.SESSION_RESUMED, [(other, None), (SESSION, None)])
    assert not files.exists("s-2")


def test_a_session_without_a_record_is_told_by_its_trail(files, service):
    service.create_checkpoint("W", {"n": 1})
    service.create_checkpoint("V", {"n": 1}, session_id="s-9")
    session = files.with_workflows(files.load("here").session)
    assert (session.status, session.checksum, session.context.workflow_ids) == ("open", "", ("W",))
    assert session.opened_at == session.updated_at == "2026-01-11T12:00:00.000000Z"
    assert files.with_workflows(files.load("s-9").session).context.workflow_ids == ("V",)
    with pytest.raises(CheckpointNotFoundError):
        files.load("nobody")
    begun = files.load("nobody", is_own=True).session
    assert begun.opened_at == begun.updated_at > session.updated_at


def test_the_session_that_changed_last_is_listed_first(files):
    for number in (2, 1, 3):
        moment = f"2026-01-0{number}T00:00:00.000000Z"
        session = Session(f"s-{number}", SessionStatus.OPEN, SessionContext(f"s-{number}"), moment, moment)
        files.commit(AuditType.SESSION_STARTED, [(session, None)])
    assert [one.id for one in files.listing()] == ["s-3", "s-2", "s-1"]


def test_a_record_that_was_damaged_is_not_returned(files, store):
    files.commit(AuditType.SESSION_STARTED, [(SESSION, None)])
    data = (store.file(file_of("s-1")) or b"").replace(b'"open"', b'"0pen"')
    store.commit([Commit(NO_WORKFLOW, Head(), files={file_of("s-1"): data})])
    with pytest.raises(CheckpointCorruptError):
        files.load("s-1")
    files.commit(
        AuditType.SESSION_STARTED, [(replace(SESSION, id="s-2", context=SessionContext("s-2")), None)]
    )
    with pytest.warns(StoreDamageWarning, match="s-1.json"):
        assert [one.id for one in files.listing()] == ["s-2"]
    # It must keep nobody from being erased.
    assert files.without_context(["W"]).files == {file_of("s-1"): None}
    assert files.without_context(["V"]).files == {}


def test_what_was_noted_before_stands_before_the_end(files, service, store):
    service.create_checkpoint("W", {})
    service.load_latest("W")
    own = replace(SESSION, id="here", context=SessionContext("here"), status=SessionStatus.CLOSED)
    files.commit(AuditType.SESSION_CLOSED, [(own, None)])
    service.flush()
    assert store.trail_head("here").closed


def test_records_of_other_workflows_keep_what_was_handed_over(files, store):
    left = replace(SESSION, context=replace(SESSION.context, summary="left"))
    other = Session("s-2", SessionStatus.OPEN, SessionContext("s-2", workflow_ids=("V",), summary="other"))
    empty = Session("s-3", SessionStatus.OPEN, SessionContext("s-3", workflow_ids=("W",)))
    for session in (left, other, empty):
        files.commit(AuditType.SESSION_STARTED, [(session, None)])
    bare = files.without_context(["W"])
    assert [*bare.files] == [*bare.expected] == [file_of("s-1")]
    assert [(entry.session_id, entry.type) for entry in bare.told] == [("s-1", AuditType.DATA_ERASED)]


def test_a_record_that_changes_between_two_looks_is_looked_at_again(files, store, monkeypatch):
    [written] = files.commit(AuditType.SESSION_STARTED, [(SESSION, None)])
    before = store.file(file_of("s-1"))
    ended = replace(written, status=SessionStatus.HANDED_OFF)
    files.commit(AuditType.SESSION_HANDED_OFF, [(ended, before)])
    answers = [before]
    true = store.file
    monkeypatch.setattr(store, "file", lambda name: answers.pop() if answers else true(name))
    assert files.confirmed("s-1").session.status is SessionStatus.HANDED_OFF
    store.commit([Commit(NO_WORKFLOW, Head(), files={file_of("s-1"): before})])
    with pytest.raises(ChecksumMismatchError, match="its trail tells of"):
        files.confirmed("s-1")
