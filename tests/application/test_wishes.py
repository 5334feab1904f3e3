from __future__ import annotations

import pytest

from holdfast import bootstrap
from holdfast.application.trailing import correlate
from holdfast.application.wishes import REASON_CHARS_MAX, Wish, check_reason, wished
from holdfast.domain.audit_type import AuditType
from holdfast.domain.errors import InvalidStateError

WISH = Wish("to see", "WF-1", "planner", {"tool": "test"})


def test_what_is_wanted_is_told_before_it_happens_and_under_the_same_id():
    with bootstrap.open("memory:") as service:
        with wished(service.audit, WISH, origin="test"):
            service.create_checkpoint("WF-1", {"a": 1})
        events = service.audit.query_events(workflow="WF-1")
        asked = next(event for event in events if event.type == AuditType.REQUEST_MADE)
        made = next(event for event in events if event.type == AuditType.CHECKPOINT_CREATED)
    assert asked.seq < made.seq and asked.data == {"reason": "to see"}
    assert (asked.agent, dict(asked.facts)) == ("planner", {"tool": "test"})
    assert asked.correlation_id == made.correlation_id
    assert (asked.correlation_id or "").startswith("test-")


def test_the_id_of_a_request_that_has_one_is_kept():
    with bootstrap.open("memory:") as service:
        with correlate("r-1"), wished(service.audit, WISH, origin="test"):
            pass
        [asked] = service.audit.query_events(event_types=[AuditType.REQUEST_MADE])
    assert asked.correlation_id == "r-1"


def test_without_a_trail_it_happens_untold():
    with bootstrap.open("memory:", audit=False) as service, wished(service.audit, WISH, origin="test"):
        assert service.create_checkpoint("WF-1", {"a": 1}).sequence == 1


@pytest.mark.parametrize("reason", ["", " \n", "x" * (REASON_CHARS_MAX + 1)])
def test_a_reason_that_is_none_is_refused_before_anything_is_told(reason):
    with pytest.raises(InvalidStateError, match="a reason has 1 to 500 characters"):
        check_reason(reason, "WF-1")
    with bootstrap.open("memory:") as service:
        with pytest.raises(InvalidStateError), wished(service.audit, Wish(reason), origin="test"):
            raise AssertionError("it was begun")
        assert service.audit.query_events(event_types=[AuditType.REQUEST_MADE]) == []
