"""The trail over HTTP: entries, proofs, heads, verification and exports."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import holdfast
from holdfast.bootstrap import signature_check
from holdfast.domain.merkle import leaf_hash, verify_consistency
from holdfast.domain.note import parse_vkey
from holdfast.domain.tlogproof import parse_tlog_proof, verify_tlog_proof
from tests.server.served import application, caller_for


@pytest.fixture(params=["file", "sqlite"])
def url(request, tmp_path):
    url = f"{request.param}:{tmp_path}/store"
    with holdfast.open(url, actor="ann", signing_key=str(tmp_path / "keys")) as service:
        for number in range(30):
            service.create_checkpoint(f"WF-{number % 3}", {"n": number})
        service.record_decision("WF-1", "go on", rationale="why not", confidence=0.5)
        service.audit.keeper.anchor(create_key=True)
        service.create_checkpoint("WF-1", {"n": "after the head"})
    return url


@pytest.fixture
def call(url, tmp_path):
    with application(url, signing_key=str(tmp_path / "keys")) as (client, desk):
        yield caller_for(client, desk, "auditor")


def walked(call, query=""):
    """Follow the cursors to the end."""
    rows, cursor = [], ""
    while True:
        page = call.get(f"/v1/audit/entries?limit=7{query}{cursor}")
        rows += page["items"]
        if page["next_cursor"] is None:
            return rows
        cursor = f"&cursor={page['next_cursor']}"


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


def test_a_proof_holds_for_whoever_checks_it(call):
    proof = call.get("/v1/audit/entries/3/proof")
    file = call("GET", "/v1/audit/entries/3/proof", headers={"accept": "text/plain"})
    keys = [parse_vkey(text) for text in proof["keys"]]
    line = (proof["line"]).encode()
    parsed = parse_tlog_proof(file.content)
    head, _ = verify_tlog_proof(parsed, line, keys, signature_check())
    assert (head.size, parsed.index, parsed.extra) == (proof["size"], 3, line)
    assert [base64.b64decode(one) for one in proof["hashes"]] == list(parsed.hashes)


def test_an_older_head_is_shown_to_be_a_beginning(call, url, tmp_path):
    before = call.get("/v1/audit/head")
    with holdfast.open(url, signing_key=str(tmp_path / "keys")) as service:
        service.audit.keeper.anchor()
    after = call.get(f"/v1/audit/head?start={before['anchored']}")
    assert after["anchored"] > before["anchored"]
    verify_consistency(
        before["anchored"],
        base64.b64decode(before["root"]),
        after["anchored"],
        base64.b64decode(after["root"]),
        [base64.b64decode(one) for one in after["consistency"]],
    )


def test_no_head_is_as_large_as_what_is_to_come(call):
    assert call("GET", "/v1/audit/head?start=1000000").status_code == 422


def test_lines_come_as_they_were_hashed(call):
    response = call("GET", "/v1/audit/lines?start=2&limit=5")
    lines = response.content.splitlines(keepends=True)
    assert len(lines) == 5
    shown = [call.get(f"/v1/audit/entries/{index}")["line"].encode() for index in range(2, 7)]
    assert list(map(leaf_hash, lines)) == list(map(leaf_hash, shown))
    assert call("GET", "/v1/audit/lines?start=100000").content == b""


def test_a_whole_log_is_verified_and_says_what_is_not_covered(call):
    told = call("POST", "/v1/audit/verify", json={"payloads": True}).json()
    assert (told["verdict"], told["level"], told["fault_count"]) == ("ok", "signed head", 0)
    assert told["unanchored"] > 0 and told["anchored"] + told["unanchored"] >= told["size"]


def test_an_export_is_made_fetched_and_verified_without_a_store(call, tmp_path):
    begun = call("POST", "/v1/audit/export", json={"reason": "yearly audit", "payloads": True})
    assert begun.status_code == 202
    place = begun.headers["location"]
    while (operation := call.get(place))["status"] in ("waiting", "running"):
        pass
    assert operation["status"] == "done", operation
    fetched = call("GET", operation["result"]["download"])
    assert fetched.headers["content-type"] == "application/zip"
    zipfile.ZipFile(io.BytesIO(fetched.content)).extractall(tmp_path / "out")
    folder = str(tmp_path / "out" / "holdfast-export")
    verified = subprocess.run(
        [sys.executable, "-m", "holdfast", "audit", "verify", folder, "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(verified.stdout)["fault_count"] == 0, verified.stderr
    assert call("GET", "/v1/audit/exports/00000000").status_code == 404
    assert call("GET", "/v1/audit/exports/..%2F..%2Fetc").status_code == 404


def test_who_may_only_read_the_trail_may_not_export_it(url):
    with application(url) as (client, desk):
        reader = caller_for(client, desk, "audit:read")
        assert reader("POST", "/v1/audit/export", json={"reason": "r"}).status_code == 403


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
