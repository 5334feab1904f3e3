"""Pruning over HTTP: what goes is what was seen."""

from __future__ import annotations

import shlex
from datetime import timedelta

import pytest

import holdfast
from holdfast.application.resolve import living
from tests.server.acts import REQUEST_ID, filled, told, why_told
from tests.server.served import application, caller_for

WHY = "the disk is nearly full"
FEW = {"keep_last": 2, "keep_days": 0}


@pytest.fixture(params=["file", "sqlite"])
def url(request, tmp_path):
    return filled(f"{request.param}:{tmp_path}/store", 12)


@pytest.fixture
def served(url):
    with application(url, retain=False) as (client, desk):
        yield caller_for(client, desk, "operator", name="ann"), desk


def plan(call, **policy):
    body = {"workflow_id": "WF/1", "policy": {**FEW, **policy}}
    answer = call("POST", "/v1/prune/plan", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def prune(call, plan_id):
    headers = {"X-Request-Id": REQUEST_ID}
    return call("POST", "/v1/prune", headers=headers, json={"plan_id": plan_id, "reason": WHY})


def kept(desk):
    return sorted(entry.sequence for entry in living(desk.kit.store, "WF/1"))


def test_a_plan_is_carried_out_exactly(served):
    call, desk = served
    shown = plan(call)
    assert shown["sequences"] and shown["kept"] + len(shown["sequences"]) == 12
    assert shown["holds"] == [] and shown["freed_bytes"] >= 0
    words = ["holdfast", "prune", "--keep-last=2", "--keep-days=0", f"--store={desk.kit.store.url}", "WF/1"]
    assert shlex.split(shown["command"]) == words
    assert len(kept(desk)) == 12
    done = prune(call, shown["id"])
    assert done.status_code == 200 and done.json()["sequences"] == shown["sequences"]
    assert set(kept(desk)) == set(range(1, 13)) - set(shown["sequences"])
    assert desk.service.load_latest("WF/1").context["n"] == 11
    assert "CHECKPOINTS_PRUNED" in {one.type for one in why_told(desk, "ann", "prune", WHY)}


def test_a_plan_that_is_not_true_any_more_is_refused(served):
    call, desk = served
    shown = plan(call)
    desk.service.create_checkpoint("WF/1", {"n": "new"})
    refused = prune(call, shown["id"])
    assert refused.status_code == 409 and refused.json()["code"] == "plan_changed"
    assert len(kept(desk)) == 13


def test_a_plan_is_given_back_once_it_is_done(served):
    call, _ = served
    shown = plan(call)
    assert prune(call, shown["id"]).status_code == 200
    assert prune(call, shown["id"]).json()["code"] == "plan_changed"


def test_what_was_pinned_meanwhile_stays(served):
    call, desk = served
    shown = plan(call)
    desk.service.pin(f"WF/1@{shown['sequences'][0]}")
    assert prune(call, shown["id"]).status_code == 409
    assert len(kept(desk)) == 12


def test_an_unknown_or_expired_plan_is_refused(served, monkeypatch):
    call, desk = served
    shown = plan(call)
    assert prune(call, "prune-0").json()["code"] == "plan_unknown"
    now = desk.kit.clock.now()
    monkeypatch.setattr(type(desk.kit.clock), "now", lambda self: now + timedelta(minutes=16))
    refused = prune(call, shown["id"])
    assert refused.status_code == 409 and refused.json()["code"] == "plan_unknown"
    assert told(desk) == []


def test_a_plan_does_not_outlive_its_server(url):
    with application(url, retain=False) as (client, desk):
        shown = plan(caller_for(client, desk, "operator"))
    with application(url, retain=False) as (client, desk):
        assert prune(caller_for(client, desk, "operator"), shown["id"]).status_code == 409


@pytest.mark.parametrize("covered", [{"workflow_id": "WF/1"}, {"subject": "alice"}, {}])
def test_what_is_held_stays_and_the_plan_says_so(served, covered):
    call, desk = served
    desk.service.subjects.declare("WF/1", "alice")
    shown = plan(call)
    hold = desk.service.holds.place(**covered, reason="case 17")
    refused = prune(call, shown["id"])
    assert refused.status_code == 409 and refused.json()["code"] == "legal_hold"
    assert [one["id"] for one in plan(call)["holds"]] == [hold.id]
    assert len(kept(desk)) == 12


def test_what_somebody_has_stays(url):
    with holdfast.open(url) as owner, application(url, retain=False) as (client, desk):
        call = caller_for(client, desk, "operator")
        shown = plan(call)
        owner.acquire_lease("WF/1", "elsewhere", ttl_seconds=300)
        refused = prune(call, shown["id"])
        assert refused.status_code == 409 and refused.json()["code"] == "lease_held"
        assert len(kept(desk)) == 12


def test_where_nothing_would_go_nothing_goes(served):
    call, _ = served
    shown = plan(call, keep_last=100)
    assert shown["sequences"] == []
    assert prune(call, shown["id"]).json() == {"workflow_id": "WF/1", "sequences": [], "freed_bytes": 0}


def test_the_equal_command_has_every_rule(served):
    call, desk = served
    policy = {"keep_daily": 3, "keep_weekly": 4, "keep_tagged": True, "max_per_phase": 5, "max_bytes": 0}
    words = shlex.split(plan(call, **policy)["command"])
    rules = ["--keep-daily=3", "--keep-weekly=4", "--keep-tagged", "--max-per-phase=5", "--max-bytes=0"]
    assert words[4:] == [*rules, f"--store={desk.kit.store.url}", "WF/1"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"workflow_id": "nobody"}, 404),
        ({"workflow_id": "a\x01"}, 400),
        ({"workflow_id": "WF/1", "policy": {"keep_last": -1}}, 422),
        ({"workflow_id": "WF/1", "policy": {"max_per_phase": 0}}, 422),
        ({}, 422),
    ],
)
def test_what_cannot_be_planned_is_refused(served, body, status):
    call, _ = served
    assert call("POST", "/v1/prune/plan", json=body).status_code == status


def test_pruning_needs_its_scope(url):
    with application(url, retain=False) as (client, desk):
        viewer = caller_for(client, desk, "viewer")
        assert prune(viewer, plan(viewer)["id"]).status_code == 403
