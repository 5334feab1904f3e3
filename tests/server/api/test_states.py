from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from holdfast.domain import plainjson
from tests.application.insight.test_state_nodes import PLAIN
from tests.server.acts import REQUEST_ID, told
from tests.server.reads import refused
from tests.server.served import application, caller_for

STATE = "/v1/checkpoints/WF%2F1@2/state"


def walked(call, path, pointer, limit):
    """Put a place together again from its nodes alone."""
    node = call.get(path, params={"path": pointer, "limit": limit})
    children = list(node["children"])
    while node["next"] is not None:
        node = call.get(path, params={"path": pointer, "limit": limit, "after": node["next"]})
        children += node["children"]
    if "value" in node:
        return node["value"]
    if not children:
        return call.get(path, params={"path": pointer, "form": "value"})
    value = {
        one["key"]: one["value"] if "value" in one else walked(call, path, one["pointer"], limit)
        for one in children
    }
    return list(value.values()) if node["kind"] == "array" else value


def test_walking_the_nodes_gives_the_state_again_however_odd_it_is(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer")
    whole = json.loads(plainjson.dumps(desk.travel.at("WF/1@2").tree))
    assert call.get(STATE, params={"form": "value"}) == whole
    assert walked(call, STATE, "", 3) == whole


@settings(max_examples=6)
@given(PLAIN)
def test_any_state_is_valid_json_node_by_node(value):
    with application("memory:") as (client, desk):
        # A dict whose keys look like a tag is stored as what it is, and not as what it says.
        desk.service.create_checkpoint("W", {"it": value})
        call = caller_for(client, desk, "viewer")
        path = "/v1/checkpoints/W@1/state"
        expected = json.loads(plainjson.dumps(desk.travel.at("W@1").tree["context"]["it"]))
        assert walked(call, path, "/context/it", 2) == expected
        assert call.get(path, params={"path": "/context/it", "form": "value"}) == expected


def test_every_look_is_told_in_the_trail(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer", name="vera")
    call("GET", STATE, headers={"X-Request-Id": REQUEST_ID})
    [entry] = told(desk)
    assert (entry.type, entry.actor, entry.workflow_id, entry.facts["cp_seq"]) == (
        "STATE_READ",
        "vera",
        "WF/1",
        2,
    )


def test_a_numbered_state_may_be_kept_for_ever_and_others_may_not(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer")
    fixed = call("GET", STATE)
    assert fixed.headers["cache-control"] == "private, max-age=31536000, immutable"
    latest = call("GET", "/v1/checkpoints/WF%2F1@latest/state")
    assert latest.headers["cache-control"] == "private, no-cache"
    named = {"If-None-Match": latest.headers["etag"]}
    assert call("GET", "/v1/checkpoints/WF%2F1@latest/state", headers=named).status_code == 304
    desk.service.create_checkpoint("WF/1", {"n": 3})
    assert call("GET", "/v1/checkpoints/WF%2F1@latest/state", headers=named).status_code == 200
    assert (
        call("GET", f"{STATE}?path=/context", headers={"If-None-Match": fixed.headers["etag"]}).status_code
        == 200
    )


def test_a_broken_download_is_gone_on_with(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer")
    plain, value = {"accept-encoding": "identity"}, {"form": "value"}
    whole = call("GET", STATE, headers=plain, params=value)
    etag, cut = whole.headers["etag"], len(whole.content) // 2
    rest = call("GET", STATE, headers={"Range": f"bytes={cut}-", "If-Range": etag}, params=value)
    assert (rest.status_code, rest.headers["content-type"]) == (206, "application/json")
    assert whole.content[:cut] + rest.content == whole.content
    assert rest.headers["content-length"] == str(len(rest.content))
    other = call("GET", STATE, headers={**plain, "Range": "bytes=1-", "If-Range": '"other"'}, params=value)
    assert (other.status_code, other.content) == (200, whole.content)
    beyond = call("GET", STATE, headers={"Range": "bytes=999999999-"}, params=value)
    refused(beyond, 416, "range_not_satisfiable")
    assert beyond.headers["content-range"] == f"bytes */{len(whole.content)}"
    head = call("HEAD", STATE, headers={**plain, "Range": "bytes=0-1"}, params=value)
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(whole.content)))
    kept = call("GET", STATE, headers={"If-None-Match": etag, "Range": "bytes=0-1"}, params=value)
    assert kept.status_code == 304


def test_compressed_bytes_are_named_apart_and_known_again(tmp_path):
    with application("memory:") as (client, desk):
        desk.service.create_checkpoint("W", {"text": "x" * 20_000})
        call = caller_for(client, desk, "viewer")
        where = "/v1/checkpoints/W@1/state?form=value"
        etags = {
            call("GET", where, headers={"accept-encoding": how}).headers["etag"]
            for how in ("gzip", "identity")
        }
        assert len(etags) == 2
        for etag in etags:
            known = call("GET", where, headers={"If-None-Match": etag})
            assert (known.status_code, known.headers["etag"]) == (304, etag)
            assert "Accept-Encoding" in known.headers["vary"]


def test_the_state_at_a_point_between_checkpoints_is_shown(shown):
    client, desk = shown
    node = caller_for(client, desk, "viewer").get("/v1/checkpoints/done@event:3/state")
    assert node["checkpoint"] == "done@event:3"


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("path=context", 400, "invalid_id"),
        ("path=/a~2", 400, "invalid_id"),
        ("path=/nothing/here", 404, "checkpoint_not_found"),
        ("path=/context/words/9", 404, "checkpoint_not_found"),
        ("form=odd", 400, "invalid_request"),
        ("after=-1", 400, "invalid_request"),
        ("limit=501", 400, "invalid_request"),
        # A secret is no answer to keep, and a reason no part of an address: revealing is a POST.
        ("reveal=true", 400, "invalid_request"),
    ],
)
def test_what_cannot_be_shown_is_refused(still, query, status, code):
    refused(still[0]("GET", f"{STATE}?{query}"), status, code)


def test_states_need_their_own_scope_and_quarantine_bars_them(shown):
    client, desk = shown
    refused(caller_for(client, desk, "auditor")("GET", STATE), 403, "scope_missing")
    desk.service.quarantine.put("WF/1", 2, "it looks odd")
    refused(caller_for(client, desk, "viewer")("GET", STATE), 409, "checkpoint_quarantined")


def test_after_the_last_child_there_is_none(shown):
    client, desk = shown
    node = caller_for(client, desk, "viewer").get(STATE, params={"after": 10_000})
    assert (node["children"], node["next"]) == ([], None)
