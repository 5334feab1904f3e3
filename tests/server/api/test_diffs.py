from __future__ import annotations

import json

import pytest

from holdfast.domain import plainjson
from tests.application.insight.test_differences import applied
from tests.server.acts import REQUEST_ID, told
from tests.server.reads import refused
from tests.server.served import caller_for

DIFF = "/v1/checkpoints/WF%2F1@2/diff"


def test_a_checkpoint_is_compared_with_the_one_before(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer")
    diff = call.get(DIFF)
    assert (diff["from"], diff["to"], diff["is_cut"]) == ("WF/1@1", "WF/1@2", False)
    assert diff["counts"] == {"added": 1, "removed": 0, "changed": 1, "moved": 1}
    told_of = {(one["kind"], one["pointer"], one["source"]) for one in diff["changes"]}
    assert told_of == {
        ("changed", "/context/n", None),
        ("moved", "/context/words/2", "/context/words/0"),
        ("added", "/context/odd", None),
    }
    first = call.get("/v1/checkpoints/WF%2F1@1/diff")
    assert first["from"] is None and first["counts"]["added"] > 0


def test_a_patch_applies_exactly(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer")
    for new, old in (("WF/1@2", "WF/1@1"), ("done@latest", "failed@1"), ("done@event:3", "WF/1@2")):
        path = f"/v1/checkpoints/{new.replace('/', '%2F')}/diff"
        response = call("GET", path, params={"base": old, "form": "patch"})
        assert response.headers["content-type"] == "application/json-patch+json"
        before, after = (json.loads(plainjson.dumps(desk.travel.at(name).tree)) for name in (old, new))
        assert applied(before, response.json()) == after


def test_differences_are_counted_by_field_cut_and_ignored(shown):
    client, desk = shown
    call = caller_for(client, desk, "viewer")
    stat = call.get("/v1/checkpoints/done@latest/diff", params={"form": "stat", "base": "done@1"})
    assert stat["changes"] == [] and {one["field"] for one in stat["fields"]} >= {"tasks", "messages"}
    cut = call.get("/v1/checkpoints/done@latest/diff", params={"limit": 1, "base": "done@1"})
    assert cut["is_cut"] and len(cut["changes"]) == 1 and cut["counts"] == stat["counts"]
    left = call.get(DIFF, params={"ignore": "/context/odd,/context/words"})
    assert [one["pointer"] for one in left["changes"]] == ["/context/n"]


def test_texts_that_grew_or_changed_are_told_in_lines(shown):
    client, desk = shown
    for text in ("a\nb\nc", "a\nB\nc", "a\nB\nc\nd", "x" * 100_000):
        desk.service.create_checkpoint("text", {"t": text})
    call = caller_for(client, desk, "viewer")
    [changed] = call.get("/v1/checkpoints/text@2/diff")["changes"]
    assert changed["text"] == "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c"
    [grew] = call.get("/v1/checkpoints/text@3/diff")["changes"]
    assert (grew["kind"], grew["new"], "old" in grew) == ("grew", "\nd", False)
    [large] = call.get("/v1/checkpoints/text@4/diff")["changes"]
    assert "new" not in large and large["preview"].endswith("...")


def test_both_looks_are_told_in_the_trail(shown):
    client, desk = shown
    caller_for(client, desk, "viewer", name="vera")("GET", DIFF, headers={"X-Request-Id": REQUEST_ID})
    assert [(one.type, one.actor, one.facts["cp_seq"]) for one in told(desk)] == [
        ("STATE_READ", "vera", 1),
        ("STATE_READ", "vera", 2),
    ]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("base=nobody@1", 404, "checkpoint_not_found"),
        ("base=%00", 400, "invalid_id"),
        ("form=odd", 400, "invalid_request"),
        ("ignore=words", 400, "invalid_id"),
        ("limit=0", 400, "invalid_request"),
    ],
)
def test_what_cannot_be_compared_is_refused(still, query, status, code):
    viewer, reader = still
    refused(viewer("GET", f"{DIFF}?{query}"), status, code)
    refused(reader("GET", DIFF), 403, "scope_missing")
