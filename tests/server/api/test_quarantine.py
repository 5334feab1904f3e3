"""Quarantine over HTTP: set aside, shown, checked again, released, dropped."""

from __future__ import annotations

import pytest

from tests.damage import Spoiler
from tests.server.acts import REQUEST_ID, SECRET, told, why_told
from tests.server.served import application, caller_for

WHY = "it looks wrong"


@pytest.fixture(params=["file", "sqlite"])
def spoiler(request, tmp_path):
    spoiler = Spoiler(request.param, tmp_path)
    spoiler.fill()
    return spoiler


@pytest.fixture
def served(spoiler):
    with application(spoiler.url) as (client, desk):
        yield caller_for(client, desk, "admin", name="ann"), desk


def act(call, path, **body):
    return call("POST", path, headers={"X-Request-Id": REQUEST_ID}, json={"reason": WHY, **body})


def test_a_checkpoint_is_set_aside_shown_and_released(served):
    call, desk = served
    made = act(call, "/v1/quarantine", checkpoint="WF@3")
    assert made.status_code == 201
    row = made.json()
    assert (row["place"], row["kind"], row["bars"], row["reason"]) == ("WF@3", "checkpoint", True, WHY)
    [entry] = why_told(desk, "ann", "setAside", WHY)
    assert entry.type == "CHECKPOINT_QUARANTINED"
    assert call.get("/v1/quarantine")["items"] == [row]
    detail = call.get(f"/v1/quarantine/{row['name']}")
    assert detail["row"] == row and detail["damage"] == [] and detail["last_good"] == "WF@2"
    checked = act(call, f"/v1/quarantine/{row['name']}/revalidate").json()
    assert checked == {"name": row["name"], "valid": True, "problems": [], "can_release": True}
    released = act(call, f"/v1/quarantine/{row['name']}/release").json()
    assert released["bars"] is False and released["released"]["by"] == "ann"
    assert desk.service.restore_checkpoint("WF@3")


def test_what_does_not_verify_is_not_released(spoiler):
    spoiler.spoil_record(3)
    with application(spoiler.url) as (client, desk):
        call = caller_for(client, desk, "operator", name="ann")
        name = act(call, "/v1/quarantine", checkpoint="WF@3").json()["name"]
        checked = act(call, f"/v1/quarantine/{name}/revalidate").json()
        assert not checked["valid"] and not checked["can_release"] and checked["problems"]
        assert [one["sequence"] for one in call.get(f"/v1/quarantine/{name}")["damage"]] == [3]
        refused = act(call, f"/v1/quarantine/{name}/release")
        assert refused.status_code == 409 and refused.json()["code"] == "checkpoint_quarantined"


def test_evidence_is_dropped_for_good_unless_it_is_held(served):
    call, desk = served
    name = act(call, "/v1/quarantine", checkpoint="WF@3").json()["name"]
    hold = call("POST", "/v1/holds", json={"workflow_id": "WF", "reason": "case 17"}).json()
    refused = act(call, f"/v1/quarantine/{name}/drop")
    assert refused.status_code == 409 and refused.json()["code"] == "legal_hold"
    assert call("POST", f"/v1/holds/{hold['id']}/release", json={"reason": "closed"}).status_code == 200
    assert act(call, f"/v1/quarantine/{name}/drop").status_code == 200
    assert call.get("/v1/quarantine")["items"] == []
    assert "QUARANTINE_DROPPED" in {one.type for one in told(desk)}


def test_what_was_not_set_aside_is_not_found(served):
    call, desk = served
    for name in ("nothing", "..%2F..%2Fetc", "a%2Fb", "A B", "%00"):
        assert call("GET", f"/v1/quarantine/{name}").status_code == 404
        for verb in ("release", "drop", "revalidate"):
            assert act(call, f"/v1/quarantine/{name}/{verb}").status_code == 404
    assert told(desk) == []


def test_the_listing_goes_on_by_its_cursor(served):
    call, _ = served
    for sequence in (1, 2, 3):
        act(call, "/v1/quarantine", checkpoint=f"WF@{sequence}")
    first = call.get("/v1/quarantine?limit=2")
    rest = call.get(f"/v1/quarantine?limit=2&cursor={first['next_cursor']}")
    assert [row["sequence"] for row in first["items"] + rest["items"]] == [3, 2, 1]
    assert rest["next_cursor"] is None
    assert call("GET", "/v1/quarantine?cursor=nowhere").status_code == 400


def test_scopes_are_minded(spoiler):
    with application(spoiler.url) as (client, desk):
        desk.service.quarantine.put("WF", 3, "damaged")
        [one] = desk.service.quarantine.entries()
        viewer, writer = caller_for(client, desk, "viewer"), caller_for(client, desk, "write")
        assert viewer.get(f"/v1/quarantine/{one.name}")
        assert act(viewer, "/v1/quarantine", checkpoint="WF@2").status_code == 403
        assert act(writer, f"/v1/quarantine/{one.name}/drop").status_code == 403
        assert act(writer, f"/v1/quarantine/{one.name}/release").status_code == 200


def test_a_reason_on_several_lines_and_with_a_secret_is_kept_clean(served):
    call, desk = served
    reason = f"first line\n\tand {SECRET}" + " more" * 40
    row = call("POST", "/v1/quarantine", json={"checkpoint": "WF@2", "reason": reason}).json()
    assert SECRET not in row["reason"] and "\n" not in row["reason"]
    assert row["reason"].startswith("first line and")
    assert SECRET not in str(list(desk.service.audit.query_events()))


def test_a_file_that_is_no_checkpoint_has_nothing_to_be_compared_with(served, monkeypatch):
    call, desk = served
    name = act(call, "/v1/quarantine", checkpoint="WF@3").json()["name"]
    desk.service.delete("WF@3")
    checked = act(call, f"/v1/quarantine/{name}/revalidate").json()
    assert checked["problems"] == ["the checkpoint was pruned"]
