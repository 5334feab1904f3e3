"""Legal holds over HTTP."""

from __future__ import annotations

import pytest

from tests.server.acts import REQUEST_ID, SECRET, told, why_told
from tests.server.served import application, caller_for

WHY = "case 17"


@pytest.fixture
def served(url):
    with application(url) as (client, desk):
        yield caller_for(client, desk, name="ann"), desk


def act(call, path, **body):
    return call("POST", path, headers={"X-Request-Id": REQUEST_ID}, json={"reason": WHY, **body})


@pytest.mark.parametrize(("covered", "covers"), [({"workflow_id": "WF/1"}, "WF/1"), ({}, "the whole store")])
def test_a_hold_is_placed_listed_and_released(served, covered, covers):
    call, desk = served
    placed = act(call, "/v1/holds", **covered)
    assert placed.status_code == 201
    row = placed.json()
    assert (row["covers"], row["reason"], row["placed_by"]) == (covers, WHY, "ann")
    assert [one.type for one in why_told(desk, "ann", "placeHold", WHY)] == ["HOLD_PLACED"]
    assert call.get("/v1/holds") == {"items": [row], "next_cursor": None}
    assert act(call, f"/v1/holds/{row['id']}/release").json() == row
    assert call.get("/v1/holds")["items"] == []
    assert act(call, f"/v1/holds/{row['id']}/release").status_code == 404


def test_a_person_is_named_by_the_pseudonym(served):
    call, _ = served
    row = act(call, "/v1/holds", subject="alice").json()
    assert row["subject"] and "alice" not in str(row)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"workflow_id": "WF/1", "subject": "alice"}, 422),
        ({"workflow_id": "a\x01"}, 400),
        ({"reason": "   "}, 422),
        ({"reason": "x" * 501}, 422),
        ({"reason": None}, 422),
    ],
)
def test_what_is_not_as_described_is_refused(served, body, status):
    call, desk = served
    assert act(call, "/v1/holds", **body).status_code == status
    assert not desk.service.holds.listing()


@pytest.mark.parametrize("reason", [".", "..", "\x01", " a ", "x" * 500, "a\nb\u2028c", "\x00\x00"])
def test_any_reason_that_says_something_is_taken(served, reason):
    call, desk = served
    assert act(call, "/v1/holds", reason=reason).status_code == 201
    assert told(desk)[0].data == {"reason": reason}


def test_a_secret_in_a_reason_is_hidden_everywhere(served):
    call, desk = served
    row = act(call, "/v1/holds", reason=f"see {SECRET}").json()
    assert SECRET not in str(row)
    assert SECRET not in str(list(desk.service.audit.query_events()))


def test_placing_needs_write_and_releasing_needs_admin(url):
    with application(url) as (client, desk):
        operator = caller_for(client, desk, "operator")
        row = act(operator, "/v1/holds").json()
        assert act(operator, f"/v1/holds/{row['id']}/release").status_code == 403
        assert act(caller_for(client, desk, "viewer"), "/v1/holds").status_code == 403
