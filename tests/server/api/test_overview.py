from __future__ import annotations

import pytest

import holdfast
from holdfast.domain.access import Scope
from holdfast.server.settings import Settings
from tests.server.reads import filled, refused
from tests.server.served import Caller, application, caller_for


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_the_overview_tells_what_needs_somebody(kind, tmp_path):
    url = filled(f"{kind}:{tmp_path}/store")
    with application(url) as (client, desk):
        call = caller_for(client, desk, "read")
        seen = call.get("/v1/overview")
        assert {name: count for name, count in seen["counts"].items() if count} == {
            "completed": 1,
            "failed": 1,
            "waiting": 1,
            "idle": 2,
        }
        assert [(need["kind"], need["workflow_id"], need["action"]) for need in seen["needs"]] == [
            ("failed", "failed", "resume"),
            ("waiting", "asking", "approve"),
        ]
        assert (seen["store"], seen["is_read_only"], seen["live"]) == (desk.kit.store.url, False, [])
        desk.service.acquire_lease("WF/1", "somebody")
        [live] = call.get("/v1/overview")["live"]
        assert (live["workflow_id"], live["status"], live["owner"]) == ("WF/1", "running", "somebody")


def test_a_trail_that_was_signed_once_and_grew_since_is_told(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url, signing_key=str(tmp_path / "keys"), head_interval=4) as service:
        service.create_checkpoint("W", {})
        service.audit.keeper.anchor(create_key=True)
    with application(url, head_interval=4) as (client, desk):
        call = caller_for(client, desk, "read")
        assert call.get("/v1/overview")["needs"] == []
        for number in range(10):
            desk.service.create_checkpoint("W", {"n": number})
        [need] = call.get("/v1/overview")["needs"]
        assert (need["kind"], need["action"], need["command"]) == (
            "unanchored",
            "none",
            f"holdfast audit anchor --store={url}",
        )


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_server_that_only_reads_answers_every_question(kind, tmp_path):
    url = filled(f"{kind}:{tmp_path}/store")
    with holdfast.open(url) as service:
        token = service.tokens.create("vera", ["admin"])[1]
    with application(url, Settings(is_read_only=True, rate=100_000)) as (client, _):
        call = Caller(client, token)
        assert call.get("/v1/overview")["is_read_only"] is True
        for path in (
            "/runs",
            "/runs/done",
            "/runs/done/events",
            "/runs/done/report",
            "/runs/done/timeline",
            "/runs/done/graph",
            "/questions",
            "/checkpoints",
            "/checkpoints/done@latest",
            "/checkpoints/done@latest/state",
            "/checkpoints/done@latest/diff",
            "/search?q=no-such-thing-anywhere",
        ):
            call.get(f"/v1{path}")


def test_whoever_may_not_read_gets_no_overview(tmp_path):
    url = filled(f"file:{tmp_path}/store")
    with application(url) as (client, desk):
        refused(caller_for(client, desk, str(Scope.METRICS))("GET", "/v1/overview"), 403, "scope_missing")
        assert client.get("/v1/overview").status_code == 401


def test_the_words_of_an_error_are_for_whoever_may_look_into_states(tmp_path):
    """An error may quote what it was about."""
    url = filled(f"file:{tmp_path}/store")
    with application(url) as (client, desk):
        whole, part = caller_for(client, desk, "viewer"), caller_for(client, desk, "read")
        [said] = [one["reason"] for one in whole.get("/v1/overview")["needs"] if one["kind"] == "failed"]
        kind, colon, words = said.partition(": ")
        assert colon and words
        for path in ("/v1/overview", "/v1/runs", "/v1/runs/failed", f"/v1/search?q={words.split()[0]}"):
            assert words in whole("GET", path).text, path
            assert words not in part("GET", path).text, path
        assert kind in part("GET", "/v1/runs/failed").text
