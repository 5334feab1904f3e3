"""What every handler works with."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.config import Config
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import InvalidIdError, StoreNotFoundError, StoreReadOnlyError
from holdfast.server.desk import open_desk
from holdfast.server.operation import Identity
from holdfast.server.settings import Settings
from tests.server.served import desk_of

ANN = Identity("ann", frozenset())


@pytest.fixture
def url(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url) as service:
        service.create_checkpoint("WF-1", {"a": 1})
    return url


def test_what_is_done_on_behalf_of_somebody_is_told_so(url):
    with desk_of(url) as desk:
        with desk.on_behalf(ANN, "req-1"):
            desk.service.create_checkpoint("WF-1", {"a": 2})
        desk.service.create_checkpoint("WF-1", {"a": 3})
        first, second = desk.service.audit.query_events(event_types=["CHECKPOINT_CREATED"])[-2:]
    assert (first.actor, first.correlation_id) == ("ann", "req-1")
    assert second.actor != "ann" and second.correlation_id is None


def test_what_could_never_be_written_takes_nothing_with_it(url):
    with desk_of(url) as desk:
        desk.note(AuditType.TRAIL_READ, "WF-1")
        with pytest.raises(InvalidIdError):
            desk.note(AuditType.TRAIL_READ, "x" * 1_000)
        desk.service.flush()
        assert desk.service.audit.query_events(event_types=[AuditType.TRAIL_READ], workflow="WF-1")


def test_a_desk_that_only_reads_refuses_to_act(url):
    with desk_of(url, Settings(is_read_only=True)) as desk, pytest.raises(StoreReadOnlyError):
        desk.check_writable()


def test_no_store_is_made(tmp_path):
    with pytest.raises(StoreNotFoundError):
        open_desk(Config.load({"store": str(tmp_path / "none")}), Settings())
