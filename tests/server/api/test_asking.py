"""Answering questions of runs, and asking something of whoever runs them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import holdfast
from tests.server.acts import PATIENCE_SECONDS, REQUEST_ID, SECRET, filled, told, waiting_run, why_told
from tests.server.served import application, caller_for

WHY = "read and found good"
PATH = "/v1/runs/WF-ask/approvals"


@pytest.fixture(params=["file", "sqlite"])
def url(request, tmp_path):
    return f"{request.param}:{tmp_path}/store"


def act(call, path, **body):
    return call("POST", path, headers={"X-Request-Id": REQUEST_ID}, json={"reason": WHY, **body})


def answer(call, granted=True, step="decide", name="go", **more):
    return act(call, PATH, step=step, name=name, granted=granted, **more)


@pytest.mark.parametrize("granted", [True, False])
def test_an_answer_reaches_the_run_in_the_name_of_whoever_asks(url, granted):
    flow = waiting_run(url)
    with application(url) as (client, desk):
        call = caller_for(client, desk, "operator", name="ann")
        given = answer(call, granted, value={"limit": 3})
        assert given.status_code == 201
        assert (given.json()["kind"], given.json()["actor"]) == ("approval", "ann")
        assert given.json()["is_running"] is False
        [entry] = why_told(desk, "ann", "answerQuestion", WHY)
        assert entry.type == ("APPROVAL_GRANTED" if granted else "APPROVAL_DENIED")
        again = answer(call)
        assert again.status_code == 409 and again.json()["code"] == "question_answered"
    assert flow.run_sync(url, "WF-ask").results["decide"] == [granted, "ann", {"limit": 3}]
    with application(url) as (client, desk):
        late = answer(caller_for(client, desk, "operator"))
        assert late.status_code == 409 and late.json()["code"] == "question_answered"


def test_a_question_that_nobody_asks_is_not_found(url):
    waiting_run(url)
    with application(url) as (client, desk):
        call = caller_for(client, desk, "operator")
        for step, name in (("decide", "other"), ("other", "go")):
            refused = answer(call, step=step, name=name)
            assert refused.status_code == 404 and refused.json()["candidates"] == ["decide go"]
        assert act(call, "/v1/runs/nobody/approvals", step="a", name="b", granted=True).status_code == 404
        assert act(call, PATH, step="decide", name="go").status_code == 422
        assert told(desk) == []


def test_of_two_answers_at_once_one_counts(url):
    waiting_run(url)
    with application(url) as (client, desk):
        callers = [caller_for(client, desk, "operator", name=name) for name in ("ann", "bob")]
        barrier = threading.Barrier(2)

        def give(call):
            barrier.wait(PATIENCE_SECONDS)
            return answer(call).status_code

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(give, callers)) == [201, 409]
        assert len(desk.service.requests.pending("WF-ask")) == 1


def test_a_secret_in_an_answer_is_hidden(url):
    waiting_run(url)
    with application(url) as (client, desk):
        call = caller_for(client, desk, "operator")
        body = {"step": "decide", "name": "go", "granted": True, "value": SECRET, "reason": f"is {SECRET}"}
        assert call("POST", PATH, json=body).status_code == 201
        assert SECRET not in str(list(desk.service.audit.query_events()))
        assert SECRET not in str(desk.service.requests.pending())


@pytest.mark.parametrize("kind", ["checkpoint", "pause", "cancel"])
def test_something_is_asked_of_whoever_runs_a_workflow(url, kind):
    filled(url)
    with holdfast.open(url) as owner, application(url) as (client, desk):
        call = caller_for(client, desk, "operator", name="ann")
        owner.acquire_lease("WF/1", "elsewhere", ttl_seconds=300)
        made = act(call, "/v1/runs/WF%2F1/requests", kind=kind)
        assert made.status_code == 201 and made.json()["is_running"] is True
        [entry] = why_told(desk, "ann", "makeRequest", WHY)
        assert (entry.type, entry.facts["kind"]) == ("REQUEST_MADE", kind)
        [request] = desk.service.requests.pending("WF/1")
        assert (request.id, request.actor, request.reason) == (made.json()["id"], "ann", WHY)


def test_where_nobody_runs_a_workflow_only_its_end_can_be_asked_for(url):
    filled(url)
    with application(url) as (client, desk):
        call = caller_for(client, desk, "operator")
        for kind in ("checkpoint", "pause"):
            refused = act(call, "/v1/runs/WF%2F1/requests", kind=kind)
            assert refused.status_code == 409 and refused.json()["code"] == "not_running"
        assert act(call, "/v1/runs/WF%2F1/requests", kind="cancel").status_code == 201
        assert act(call, "/v1/runs/WF%2F1/requests", kind="approval").status_code == 422
        assert act(call, "/v1/runs/nobody/requests", kind="pause").status_code == 404


def test_nothing_is_asked_of_what_has_ended(url):
    with holdfast.open(url) as service:
        service.create_checkpoint("WF/1", {"n": 1}, type="workflow_complete")
    with application(url) as (client, desk):
        call = caller_for(client, desk, "operator")
        refused = act(call, "/v1/runs/WF%2F1/requests", kind="cancel")
        assert refused.status_code == 409 and refused.json()["code"] == "workflow_ended"
