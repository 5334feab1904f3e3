"""Forks over HTTP: planned, edited, refused, and told."""

from __future__ import annotations

import shlex

import pytest

from tests.server.acts import REQUEST_ID, SECRET, told, why_told
from tests.server.served import application, caller_for

WHY = "to try the other way"
PATH = "/v1/checkpoints/WF%2F1@3/fork"


def fork(call, new="WF/2", path=PATH, **more):
    body = {"new_workflow_id": new, "reason": WHY, **more}
    return call("POST", path, headers={"X-Request-Id": REQUEST_ID}, json=body)


def test_a_fork_begins_where_the_other_was(served):
    call, desk = served
    answer = fork(call)
    assert answer.status_code == 201
    assert answer.json() == {"id": "WF/2@1", "workflow_id": "WF/2", "forked_from": "WF/1@3", "edits": 0}
    assert desk.service.load_latest("WF/2").context["n"] == 2
    assert "WORKFLOW_FORKED" in {one.type for one in why_told(desk, "ann", "fork", WHY)}


def test_a_point_between_two_checkpoints_can_be_forked(served):
    call, desk = served
    answer = fork(call, path="/v1/checkpoints/WF%2F1@event:4/fork")
    assert answer.json()["forked_from"] == "WF/1@event:4"
    [decision] = desk.service.load_latest("WF/2").decisions
    assert decision["description"] == "decision 1"


def test_edits_make_the_second_checkpoint(served):
    call, desk = served
    edits = [
        {"op": "test", "path": "/context/n", "value": 2},
        {"op": "replace", "path": "/context/n", "value": 40},
        {"op": "add", "path": "/context/words/-", "value": "c"},
        {"op": "move", "from": "/context/words/0", "path": "/context/first"},
    ]
    answer = fork(call, edits=edits)
    assert answer.json()["id"] == "WF/2@2" and answer.json()["edits"] == 4
    state = desk.service.load_latest("WF/2")
    assert state.context == {"n": 40, "words": ["b", "c"], "first": "a"} and state.workflow_id == "WF/2"
    assert desk.service.load_latest("WF/1").context["n"] == 5


@pytest.mark.parametrize(
    "edit",
    [
        {"op": "replace", "path": "/context/missing", "value": 1},
        {"op": "test", "path": "/context/n", "value": 3},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "/context/words/9", "value": 1},
        {"op": "add", "path": "/context/x"},
        {"op": "copy", "path": "/context/x"},
        {"op": "add", "path": "/context/x", "value": {"$hf": "blob", "sha256": "00" * 32}},
    ],
)
def test_an_edit_that_does_not_fit_is_named_and_nothing_is_made(served, edit):
    call, desk = served
    refused = fork(call, edits=[{"op": "add", "path": "/context/ok", "value": 1}, edit])
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["place"] == "edits[1]"
    assert desk.kit.store.head("WF/2").event_seq == 0 and told(desk) == []


def test_edits_that_leave_no_state_are_refused_and_nothing_is_made(served):
    call, desk = served
    for phase in ("x", 1.5, True, -1, 2**31):
        assert fork(call, edits=[{"op": "add", "path": "/phase", "value": phase}]).status_code == 422
    for place, value in {
        "/tasks": 7,
        "/context": [],
        "/status": 5,
        "/current_step": True,
        "/session_id": "other",
        "/workflow_id": "other",
    }.items():
        refused = fork(call, edits=[{"op": "add", "path": place, "value": value}])
        assert refused.status_code == 422, place
    assert desk.kit.store.head("WF/2").event_seq == 0 and told(desk) == []


def test_a_state_that_is_too_large_with_its_edits_is_refused(url):
    with application(url, limit_bytes=2_000) as (client, desk):
        call = caller_for(client, desk, "operator")
        refused = fork(call, edits=[{"op": "add", "path": "/context/x", "value": "x" * 3_000}])
        assert refused.status_code == 413
        assert desk.kit.store.head("WF/2").event_seq == 0


def test_a_name_that_is_taken_is_refused(served):
    call, _ = served
    assert fork(call, new="WF/1").status_code == 409
    plan = call("POST", f"{PATH}/plan", json={"new_workflow_id": "WF/1"}).json()
    assert plan["refusals"] == ["there is a workflow WF/1 already"]


@pytest.mark.parametrize(
    ("path", "new", "status"),
    [
        ("/v1/checkpoints/WF%2F1@99/fork", "WF/2", 404),
        ("/v1/checkpoints/nobody/fork", "WF/2", 404),
        ("/v1/checkpoints/WF%2F1@event:999/fork", "WF/2", 404),
        (PATH, "a\x01b", 400),
        (PATH, "", 422),
    ],
)
def test_what_is_not_there_is_refused(served, path, new, status):
    call, _ = served
    assert fork(call, new=new, path=path).status_code == status
    assert call("POST", f"{path}/plan", json={"new_workflow_id": new}).status_code == status


def test_a_plan_tells_what_would_be_made_and_makes_nothing(served):
    call, desk = served
    edits = [{"op": "replace", "path": "/context/n", "value": "it's"}]
    plan = call("POST", f"{PATH}/plan", json={"new_workflow_id": "WF/2", "edits": edits}).json()
    assert (plan["forked_from"], plan["checkpoints"], plan["refusals"]) == ("WF/1@3", 2, [])
    where = f"--store={desk.kit.store.url}"
    words = ["holdfast", "fork", '--set=/context/n="it\'s"', where, "WF/1@3", "WF/2"]
    assert shlex.split(plan["command"]) == words
    assert desk.kit.store.head("WF/2").event_seq == 0
    edits = [{"op": "remove", "path": "/context/n"}]
    plan = call("POST", f"{PATH}/plan", json={"new_workflow_id": "WF/2", "edits": edits}).json()
    assert plan["command"] == ""


def test_nobody_finds_out_by_edits_what_is_in_a_state(url):
    with application(url) as (client, desk):
        call = caller_for(client, desk, "read", "recover")
        body = {"new_workflow_id": "WF/2", "edits": [{"op": "test", "path": "/context/n", "value": 2}]}
        assert call("POST", f"{PATH}/plan", json=body).status_code == 403
        assert call("POST", PATH, json={**body, "reason": WHY}).status_code == 403
        assert call("POST", f"{PATH}/plan", json={"new_workflow_id": "WF/2"}).status_code == 200
        assert fork(call).status_code == 201


def test_a_secret_in_an_edit_is_hidden(served):
    call, desk = served
    edits = [{"op": "add", "path": "/context/key", "value": SECRET}]
    assert fork(call, edits=edits).status_code == 201
    tree = desk.travel.at("WF/2@latest").tree
    assert SECRET not in str(tree)
