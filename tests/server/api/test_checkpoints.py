from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast
from tests.server.acts import REQUEST_ID, told
from tests.server.reads import filled, pages, refused
from tests.server.served import application, caller_for


def test_checkpoints_are_listed_newest_first_and_filtered(shown):
    client, desk = shown
    call = caller_for(client, desk, "read")
    rows = call.get("/v1/checkpoints")["items"]
    moments = [row["created_at"] for row in rows]
    assert moments == sorted(moments, reverse=True)
    assert call.get("/checkpoints")["items"] == rows

    def chosen(query):
        return [row["id"] for row in call.get(f"/v1/checkpoints?{query}")["items"]]

    assert chosen("run=WF%2F1") == ["WF/1@2", "WF/1@1"]
    assert chosen("agent=writer") == ["WF/1@1"]
    assert chosen("type=error_state") == [row["id"] for row in rows if row["type"] == "error_state"] != []
    assert chosen("run=nobody") == []
    assert chosen(f"since={moments[0]}") == [rows[0]["id"]]
    assert chosen(f"until={moments[-1]}") == [rows[-1]["id"]]


@settings(max_examples=4)
@given(limit=st.integers(1, 5), more=st.integers(0, 2))
def test_pages_hold_every_checkpoint_once_while_others_are_made(limit, more):
    with application("memory:") as (client, desk):
        for number in range(9):
            desk.service.create_checkpoint(f"W{number % 3}", {"n": number})
        call = caller_for(client, desk, "read")
        seen = []
        for page in pages(call, "/v1/checkpoints", limit):
            seen += [row["id"] for row in page]
            if more:
                more -= 1
                desk.service.create_checkpoint("W0", {"later": more})
        assert sorted(seen) == sorted(f"W{run}@{number}" for run in range(3) for number in range(1, 4))


@pytest.mark.parametrize(
    "query", ["status=odd", "type=odd", "limit=0", "cursor=x", "run=%00", "until=now", "agent=", "x=1"]
)
def test_wrong_parameters_are_refused(query, still):
    response = still[1]("GET", f"/v1/checkpoints?{query}")
    assert response.status_code == 400, response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_a_checkpoint_is_shown_with_what_is_around_it(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer", name="vera")
    response = call("GET", "/v1/checkpoints/WF%2F1@1", headers={"X-Request-Id": REQUEST_ID})
    shown = response.json()
    assert (shown["row"]["id"], shown["previous"], shown["next"]) == ("WF/1@1", None, "WF/1@2")
    assert [field["name"] for field in shown["fields"]][-1] == "context"
    assert (shown["is_quarantined"], shown["problem"], shown["max_retries"]) == (False, "", 3)
    [entry] = told(desk)
    assert (entry.type, entry.actor, entry.facts["cp_seq"]) == ("STATE_READ", "vera", 1)
    assert call.get("/v1/checkpoints/forked@latest")["forked_from"] == "WF/1@1"
    bare = caller_for(client, desk, "read").get("/v1/checkpoints/WF%2F1@1")
    assert (bare["fields"], bare["summary"]) == ([], "")


def test_a_checkpoint_that_failed_says_why(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer")
    rows = call.get("/v1/checkpoints?run=failed&status=failed")["items"]
    assert rows != []
    for row in rows:
        assert "no ink" in call.get(f"/v1/checkpoints/{row['id']}")["error_message"]


@pytest.mark.parametrize(
    "name", ["WF%2F1@2", "WF%2F1@latest", "WF%2F1@latest~0", "WF%2F1", "{uuid}", "{start}"]
)
def test_a_checkpoint_has_many_names(still, name):
    call = still[1]
    uuid = call.get("/v1/checkpoints/WF%2F1@2")["row"]["uuid"]
    path = name.format(uuid=uuid, start=uuid[:13])
    assert call.get(f"/v1/checkpoints/{path}")["row"]["id"] == "WF/1@2"


def test_a_version_that_is_known_is_not_sent_again(shown):
    client, desk = shown
    call = caller_for(client, desk, "read")
    path = "/v1/checkpoints/WF%2F1@1"
    etag = call("GET", path).headers["etag"]
    assert etag.startswith('"')
    assert call("GET", path, headers={"If-None-Match": f'"other", {etag}'}).status_code == 304
    head = call("HEAD", path)
    assert (head.status_code, head.content, head.headers["etag"]) == (200, b"", etag)
    desk.service.mark_failed("WF/1@1", "no")
    assert call("GET", path, headers={"If-None-Match": etag}).status_code == 200
    changed = call("GET", path).headers["etag"]
    assert changed != etag
    desk.service.quarantine.put("WF/1", 1, "it looks odd")
    shown = call("GET", path, headers={"If-None-Match": changed})
    assert (shown.status_code, shown.json()["is_quarantined"]) == (200, True)


def test_what_comes_after_a_checkpoint_is_told_to_whoever_knows_the_checkpoint(shown):
    client, desk = shown
    call = caller_for(client, desk, "read")
    newest = call.get("/v1/checkpoints/WF%2F1@latest")["row"]["id"].replace("/", "%2F")
    first = call("GET", f"/v1/checkpoints/{newest}")
    assert first.json()["next"] is None
    desk.service.create_checkpoint("WF/1", {"later": 1})
    again = call("GET", f"/v1/checkpoints/{newest}", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.json()["next"]) == (200, "WF/1@3")
    kept = call("GET", f"/v1/checkpoints/{newest}", headers={"If-None-Match": again.headers["etag"]})
    assert (kept.status_code, kept.headers["vary"]) == (304, again.headers["vary"])


def test_damage_is_told_to_whoever_has_seen_the_checkpoint_whole(tmp_path):
    url = filled(f"file:{tmp_path}/store")
    with holdfast.open(url) as service:
        service._engine.kit.store.settle()
    with application(url) as (client, desk):
        call, path = caller_for(client, desk, "viewer"), "/v1/checkpoints/WF%2F1@2"
        etag = call("GET", path).headers["etag"]
        for record in (tmp_path / "store").glob("checkpoints/*/wf-1~*/checkpoint_*.json*"):
            record.write_bytes(record.read_bytes().replace(b"words", b"wordz"))
        again = call("GET", path, headers={"If-None-Match": etag})
        assert again.status_code == 200 and again.json()["problem"] != ""


def test_a_state_that_cannot_be_read_is_told_and_not_thrown(shown):
    client, desk = shown
    desk.service.quarantine.put("WF/1", 1, "it looks odd")
    shown = caller_for(client, desk, "viewer").get("/v1/checkpoints/WF%2F1@1")
    assert (shown["problem"], shown["fields"]) == ("the checkpoint is in quarantine", [])


def test_a_record_that_is_damaged_is_told_and_not_thrown(tmp_path):
    url = filled(f"file:{tmp_path}/store")
    with holdfast.open(url) as service:
        service._engine.kit.store.settle()
    for path in (tmp_path / "store").glob("checkpoints/*/wf-1~*/checkpoint_*.json*"):
        path.write_bytes(path.read_bytes().replace(b"words", b"wordz"))
    with application(url) as (client, desk):
        call = caller_for(client, desk, "viewer")
        shown = call.get("/v1/checkpoints/WF%2F1@2")
        assert shown["problem"] != "" and shown["fields"] == []
        refused(call("GET", "/v1/checkpoints/WF%2F1@2/state"), 409, "checksum_mismatch")


def test_the_beginning_of_several_uuids_is_refused_with_what_may_be_meant(shown, monkeypatch):
    client, desk = shown
    store = desk.kit.store
    both = [("WF/1", entry) for entry in store.entries("WF/1")]
    monkeypatch.setattr(type(store), "find", lambda self, prefix: both)
    for path in ("", "/state", "/diff"):
        response = caller_for(client, desk, "viewer")("GET", f"/v1/checkpoints/abcd{path}")
        problem = refused(response, 409, "ambiguous_name")
        assert problem["candidates"] == ["WF/1@1", "WF/1@2"]


@pytest.mark.parametrize("path", ["", "/state", "/diff"])
@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("nobody@1", 404, "checkpoint_not_found"),
        ("WF%2F1@99", 404, "checkpoint_not_found"),
        ("WF%2F1@0", 404, "checkpoint_not_found"),
        ("abcd1234", 404, "checkpoint_not_found"),
        ("x%2Fcheckpoint_1.json", 404, "checkpoint_not_found"),
        ("%ff%2Fcheckpoint_1.json", 400, "invalid_id"),
        ("%00@1", 400, "invalid_id"),
        ("@1", 400, "invalid_id"),
        ("WF%2F1@time:x", 400, "invalid_id"),
    ],
)
def test_wrong_names_are_refused(still, path, name, status, code):
    refused(still[0]("GET", f"/v1/checkpoints/{name}{path}"), status, code)


def test_a_point_between_two_checkpoints_is_no_checkpoint(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer")
    refused(call("GET", "/v1/checkpoints/WF%2F1@event:1"), 400, "invalid_id")
