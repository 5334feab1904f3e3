from __future__ import annotations

import holdfast
from tests.server.reads import refused
from tests.server.served import application, caller_for


def test_a_checkpoint_tells_whether_a_signed_head_covers_it(tmp_path):
    keys = str(tmp_path / "keys")
    url = f"file:{tmp_path}/store"
    with holdfast.open(url):
        pass
    with application(url, signing_key=keys) as (client, desk):
        desk.service.create_checkpoint("WF/1", {"n": 1})
        call = caller_for(client, desk, "read")
        before = call.get("/v1/checkpoints/WF%2F1@1/signature")
        assert (before["checkpoint"], before["state"], before["size"]) == ("WF/1@1", "waiting", 0)
        assert before["producer"] == holdfast.__version__
        desk.service.audit.keeper.anchor(create_key=True)
        response = call("GET", "/v1/checkpoints/WF%2F1@latest/signature")
        after = response.json()
        assert response.headers["cache-control"] == "no-store"
        assert (after["state"], after["is_own_key"], after["problem"]) == ("signed", True, "")
        assert after["index"] == before["index"] < after["size"]
        entry = caller_for(client, desk, "auditor").get(f"/v1/audit/entries/{after['index']}")
        assert (entry["row"]["type"], entry["row"]["facts"]["cp_seq"]) == ("CHECKPOINT_CREATED", 1)


def test_what_is_not_there_has_no_signature(still):
    refused(still[1]("GET", "/v1/checkpoints/nobody@1/signature"), 404, "checkpoint_not_found")
