"""Entries of the trail over HTTP: listed, shown, and handed out as they were hashed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import holdfast
from holdfast.domain.merkle import leaf_hash
from tests.server.audits import signed, walked
from tests.server.served import application, caller_for


@pytest.fixture(params=["file", "sqlite"])
def url(request, tmp_path):
    return signed(f"{request.param}:{tmp_path}/store", tmp_path)


@pytest.fixture
def call(url, tmp_path):
    with application(url, signing_key=str(tmp_path / "keys")) as (client, desk):
        yield caller_for(client, desk, "auditor")


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_every_entry_is_listed_once_in_order(call, order):
    size = call.get("/v1/audit/entries?limit=1")["size"]
    indexes = [row["index"] for row in walked(call, f"&order={order}")]
    assert len(indexes) == len(set(indexes)) and set(range(size)) <= set(indexes)
    assert indexes == sorted(indexes, reverse=order == "newest")


def test_entries_are_chosen_by_what_they_have(call):
    rows = walked(call, "&type=CHECKPOINT_CREATED&workflow=WF-1&actor=ann")
    assert len(rows) == 11
    assert {row["workflow_id"] for row in rows} == {"WF-1"}
    assert walked(call, "&outcome=failure") == []
    assert walked(call, "&since=2100-01-01T00:00:00Z") == []
    assert len(walked(call, "&type=CHECKPOINT_CREATED&until=2100-01-01T00:00:00Z")) == 31


@pytest.mark.parametrize(
    "query", ["since=2026-01-01T00:00:00", "cursor=x", "limit=0", "limit=501", "order=up", "outcome=good"]
)
def test_a_wrong_question_is_told(call, query):
    assert call("GET", f"/v1/audit/entries?{query}").status_code == 400


def test_what_the_newest_head_covers_is_said_of_each(call):
    page = call.get("/v1/audit/entries?limit=500&order=oldest")
    assert 0 < page["anchored"] < page["size"]
    assert [row["is_anchored"] for row in page["items"]] == [
        row["index"] < page["anchored"] for row in page["items"]
    ]


def test_an_entry_is_shown_with_its_payload_and_the_bytes_that_were_hashed(call):
    [row] = walked(call, "&type=AGENT_DECISION")
    detail = call.get(f"/v1/audit/entries/{row['index']}")
    assert detail["payload"]["rationale"] == "why not"
    assert detail["payload_state"] == "opened"
    assert json.loads(detail["line"])["hash"] == detail["hash"]


@pytest.mark.parametrize("index", ["9999999", "x", "-1", "1" * 30, "%C2%B2"])
def test_what_is_no_entry_is_not_found(call, index):
    assert call("GET", f"/v1/audit/entries/{index}").status_code == 404
    assert call("GET", f"/v1/audit/entries/{index}/proof").status_code == 404


def test_lines_come_as_they_were_hashed(call):
    response = call("GET", "/v1/audit/lines?start=2&limit=5")
    lines = response.content.splitlines(keepends=True)
    assert len(lines) == 5
    shown = [call.get(f"/v1/audit/entries/{index}")["line"].encode() for index in range(2, 7)]
    assert list(map(leaf_hash, lines)) == list(map(leaf_hash, shown))
    assert call("GET", "/v1/audit/lines?start=100000").content == b""


def test_reading_the_trail_is_told_with_who_read(url):
    with application(url) as (client, desk):
        caller_for(client, desk, "auditor", name="eve").get("/v1/audit/entries?workflow=WF-1")
        desk.service.flush()
        entries = desk.service.audit.query_events(event_types=["TRAIL_READ"], actor="eve")
    assert [entry.workflow_id for entry in entries] == ["WF-1"]


def test_a_changed_entry_is_shown_as_broken_and_fails_the_verification(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url, session="s-1") as service:
        for number in range(5):
            service.create_checkpoint("WF-1", {"n": number})
        service.audit.keeper.update()
    [trail] = [path for path in Path(tmp_path, "store", "audit").rglob("*.jsonl") if "s-1" in str(path)]
    trail.write_bytes(trail.read_bytes().replace(b'"CHECKPOINT_CREATED"', b'"CHECKPOINT_CREATEE"', 1))
    with application(url) as (client, desk):
        call = caller_for(client, desk, "auditor")
        broken = [row for row in walked(call) if row["problem"]]
        assert len(broken) == 1
        detail = call.get(f"/v1/audit/entries/{broken[0]['index']}")
        assert "CREATEE" in detail["line"] and detail["payload_state"] == "damaged"
        told = call("POST", "/v1/audit/verify", json={}).json()
        assert told["verdict"] == "failed"
        assert told["faults"][0]["index"] == broken[0]["index"]


def test_a_damaged_line_stays_one_line(tmp_path, monkeypatch):
    url = f"sqlite:{tmp_path}/store"
    with holdfast.open(url) as service:
        service.create_checkpoint("WF-1", {})
    with application(url) as (client, desk):
        call, whole = caller_for(client, desk, "auditor"), desk.kit.store.leaves

        def leaves(*, after=0):
            for index, line in enumerate(whole(after=after), after):
                yield line[:20] + b"\n\n" + line[20:] if index == 1 else line

        before = call("GET", "/v1/audit/lines?limit=4").content.splitlines()
        monkeypatch.setattr(desk.kit.store, "leaves", leaves, raising=False)
        damaged = call("GET", "/v1/audit/lines?limit=4").content.split(b"\n")
    assert damaged[:1] + damaged[2:4] == before[:1] + before[2:4] and damaged[1] != before[1]
    assert len(damaged) == 5
