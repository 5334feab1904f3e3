from __future__ import annotations

from tests.server.served import caller_for


def test_a_run_is_laid_out_along_time(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer")
    drawn = call.get("/v1/runs/failed/timeline")
    assert [lane["agent"] for lane in drawn["lanes"]] == ["plan", "price"]
    assert {span["status"] for span in drawn["lanes"][1]["spans"]} <= {"gave_up", "stopped", "open"}
    columns = drawn["checkpoints"]
    assert len({len(column) for column in columns.values()}) == 1 and columns["sequence"][0] == 1
    assert any("no ink" in mark["text"] for mark in drawn["marks"])
    bare = caller_for(client, desk, "read").get("/v1/runs/failed/timeline")
    assert {mark["text"] for mark in bare["marks"]} == {""}


def test_a_timeline_that_did_not_change_is_not_sent_again(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer")
    first = call("GET", "/v1/runs/WF%2F1/timeline")
    named = {"If-None-Match": first.headers["etag"]}
    again = call("GET", "/v1/runs/WF%2F1/timeline", headers=named)
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    other = caller_for(client, desk, "read")("GET", "/v1/runs/WF%2F1/timeline", headers=named)
    assert other.status_code == 200
    desk.service.create_checkpoint("WF/1", {"n": 3})
    assert call("GET", "/v1/runs/WF%2F1/timeline", headers=named).status_code == 200


def test_a_large_timeline_is_packed(shown):
    client, desk = shown
    for number in range(200):
        desk.service.create_checkpoint("many", {"n": number}, wait=False)
    desk.service.flush()
    call = caller_for(client, desk, "viewer")
    response = call("GET", "/v1/runs/many/timeline", headers={"Accept-Encoding": "gzip"})
    assert response.headers["content-encoding"] == "gzip"
    assert response.json()["checkpoints"]["sequence"] == list(range(1, 201))


def test_steps_and_forks_are_drawn(shown):
    client, desk = shown
    call = caller_for(client, desk, "read")
    drawn = call.get("/v1/runs/done/graph")
    assert {node["id"]: node["status"] for node in drawn["nodes"]} == {
        "plan": "completed",
        "price[0]": "completed",
        "price[1]": "completed",
    }
    assert {(edge["source"], edge["target"]) for edge in drawn["edges"]} == {
        ("plan", "price[0]"),
        ("plan", "price[1]"),
    }
    lineage = call.get("/v1/runs/WF%2F1/graph")["lineage"]
    assert {node["id"] for node in lineage["nodes"]} == {"WF/1", "forked"}
    assert [(edge["kind"], edge["label"]) for edge in lineage["edges"]] == [("fork", "WF/1@1")]
