from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from tests.server.acts import REQUEST_ID, told
from tests.server.reads import filled, pages, refused
from tests.server.served import application, caller_for


@pytest.fixture(params=["file", "sqlite"])
def url(request, tmp_path):
    return filled(f"{request.param}:{tmp_path}/store")


def every(call, path, limit):
    return [row for page in pages(call, path, limit) for row in page]


def test_runs_are_listed_newest_first_and_filtered(url):
    with application(url) as (client, desk):
        call = caller_for(client, desk, "read")
        names = [row["workflow_id"] for row in call.get("/v1/runs")["items"]]
        assert names == ["asking", "forked", "WF/1", "failed", "done"]
        assert [row["workflow_id"] for row in every(call, "/v1/runs", 2)] == names

        def chosen(query):
            return [row["workflow_id"] for row in call.get(f"/v1/runs?{query}")["items"]]

        assert chosen("status=failed,waiting") == ["asking", "failed"]
        assert chosen("agent=writer") == ["WF/1"]
        assert chosen("q=wf") == ["WF/1"]
        assert chosen("label=none") == []
        assert chosen("since=2999-01-01T00:00:00Z") == []


@settings(max_examples=5)
@given(limit=st.integers(1, 4), more=st.integers(0, 3))
def test_pages_hold_every_run_once_while_others_begin(limit, more):
    with application("memory:") as (client, desk):
        names = {f"run {number}" for number in range(7)}
        for name in sorted(names):
            desk.service.create_checkpoint(name, {})
        call = caller_for(client, desk, "read")
        seen = []
        for page in pages(call, "/v1/runs", limit):
            seen += [row["workflow_id"] for row in page]
            if more:
                more -= 1
                desk.service.create_checkpoint(f"later {more}", {})
        assert sorted(seen) == sorted(names)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=501",
        "limit=x",
        "status=odd",
        "status=failed,",
        "cursor=x",
        "since=yesterday",
        "since=2026-01-01T00:00:00",
        "nothing=1",
        "q=a&q=b",
        "q=",
    ],
)
def test_wrong_parameters_are_refused(query, still):
    response = still[1]("GET", f"/v1/runs?{query}")
    assert response.status_code == 400, response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_a_run_is_shown_with_its_agents_and_forks(url):
    with application(url) as (client, desk):
        call = caller_for(client, desk, "viewer")
        done = call.get("/v1/runs/done")
        assert (done["run"]["status"], done["session_id"], done["metrics"]) == (
            "completed",
            "s-1",
            {"tokens": 10},
        )
        assert sorted((one["agent"], one["completed"]) for one in done["agents"]) == [
            ("plan", 1),
            ("price", 2),
        ]
        assert done["events"] > 5 and done["first_activity"] < done["run"]["last_activity"]
        assert call.get("/v1/runs/forked")["forked_from"] == "WF/1@1"
        [fork] = call.get("/v1/runs/WF%2F1")["forks"]
        assert (fork["workflow_id"], fork["point"]) == ("forked", "WF/1@1")
        desk.service.acquire_lease("WF/1", "somebody")
        assert call.get("/v1/runs/WF%2F1")["lease"]["owner"] == "somebody"


def test_questions_are_for_whoever_may_read_states(url):
    with application(url) as (client, desk):
        call, reader = caller_for(client, desk, "viewer"), caller_for(client, desk, "read")
        [question] = call.get("/v1/runs/asking")["questions"]
        assert (question["step_id"], question["name"], question["question"]) == ("decide", "go", "Go on?")
        assert reader.get("/v1/runs/asking")["questions"] == []
        refused(reader("GET", "/v1/questions"), 403, "scope_missing")
        for path in ("/v1/questions", "/v1/runs/asking/questions"):
            assert call.get(path)["items"] == [question]
        assert call.get("/v1/runs/done/questions")["items"] == []
        desk.service.requests.put("asking", "approval", actor="ann", data={"granted": True}, reason="fine")
        answer = call.get("/v1/questions")["items"][0]["answer"]
        assert (answer["granted"], answer["by"], answer["reason"]) == (True, "ann", "fine")


def test_events_are_listed_in_both_directions_and_told_in_the_trail(url):
    with application(url) as (client, desk):
        call = caller_for(client, desk, "viewer", name="vera")
        first = every(call, "/v1/runs/done/events", 3)
        assert [event["seq"] for event in first] == list(range(1, len(first) + 1))
        assert every(call, "/v1/runs/done/events?order=newest", 4) == first[::-1]
        completed = every(call, "/v1/runs/done/events?type=AGENT_COMPLETED", 2)
        assert sorted(event["step"] for event in completed) == ["plan", "price[0]", "price[1]"]
        assert completed[0]["data"]["metrics"] == {"tokens": 10}
        call("GET", "/v1/runs/done/events?limit=2", headers={"X-Request-Id": REQUEST_ID})
        [entry] = told(desk)
        assert (entry.type, entry.actor, dict(entry.facts)) == (
            "EVENTS_READ",
            "vera",
            {"first": 1, "last": 2},
        )
        refused(call("GET", "/v1/runs/done/events?cursor=x"), 400, "invalid_id")
        refused(caller_for(client, desk, "read")("GET", "/v1/runs/done/events"), 403, "scope_missing")


def test_events_may_hold_anything(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url) as service:
        service.append_event(
            "W", "ODD", {"b": b"\x00", "n": float("inf"), "i": 2**70, "t": (1,)}, cost={"usd": 1.5}
        )
    with application(url) as (client, desk):
        [event] = caller_for(client, desk, "viewer").get("/v1/runs/W/events")["items"]
        assert event["data"]["b"] == {"$hf": "bytes", "v": "AA=="}
        assert event["data"]["n"] == {"$hf": "float", "v": "inf"}
        assert event["data"]["t"] == {"$hf": "tuple", "v": [1]}
        assert event["cost"] == {"usd": 1.5}


@pytest.mark.parametrize("path", ["", "/events", "/questions", "/timeline", "/graph", "/report"])
def test_runs_that_are_not_there_are_refused(path, still):
    call = still[0]
    refused(call("GET", f"/v1/runs/nobody{path}"), 404, "checkpoint_not_found")
    refused(call("GET", f"/v1/runs/%ff{path}"), 400, "invalid_id")
    refused(call("GET", f"/v1/runs/%20a{path}"), 400, "invalid_id")


def test_an_encrypted_store_is_read_by_whoever_has_its_key(tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_ENCRYPTION_KEY", bytes(range(32)).hex())
    url = f"file:{tmp_path}/store"
    settings_of = {"encrypt": True, "encryption_key": "env:TEST_ENCRYPTION_KEY"}
    with holdfast.open(url, **settings_of) as service:
        service.create_checkpoint("W", {"number": 1})
        service.append_event("W", "RUN_UPDATED", {"fields": {"status": "paused"}}, step_id="run")
        service.fork_workflow("W@1", "X")
    with application(url, **settings_of) as (client, desk):
        call = caller_for(client, desk, "viewer")
        assert call.get("/v1/runs/W")["run"]["status"] == "paused"
        assert call.get("/v1/runs/X")["forked_from"] == "W@1"
        assert call.get("/v1/checkpoints/W@1/state?path=/context&form=value") == {"number": 1}
