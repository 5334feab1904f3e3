"""What proves the trail, over HTTP: proofs, heads, verification."""

from __future__ import annotations

import base64

import pytest

import holdfast
from holdfast.bootstrap import signature_check
from holdfast.domain.merkle import verify_consistency
from holdfast.domain.note import parse_vkey
from holdfast.domain.tlogproof import parse_tlog_proof, verify_tlog_proof
from tests.server.audits import signed
from tests.server.served import application, caller_for


@pytest.fixture(params=["file", "sqlite"])
def url(request, tmp_path):
    return signed(f"{request.param}:{tmp_path}/store", tmp_path)


@pytest.fixture
def call(url, tmp_path):
    with application(url, signing_key=str(tmp_path / "keys")) as (client, desk):
        yield caller_for(client, desk, "auditor")


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


def test_a_whole_log_is_verified_and_says_what_is_not_covered(call):
    told = call("POST", "/v1/audit/verify", json={"payloads": True}).json()
    assert (told["verdict"], told["level"], told["fault_count"]) == ("ok", "signed head", 0)
    assert told["unanchored"] > 0 and told["anchored"] + told["unanchored"] >= told["size"]
