from __future__ import annotations

import pytest

from tests.server.reads import filled, refused
from tests.server.served import application, caller_for


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_one_box_finds_everything(kind, tmp_path):
    with application(filled(f"{kind}:{tmp_path}/store")) as (client, desk):
        call = caller_for(client, desk, "admin")

        def found(text):
            return [(hit["kind"], hit["id"]) for hit in call.get("/v1/search", params={"q": text})["items"]]

        assert found("wf") == [("run", "WF/1")]
        assert found("WF/1@latest") == [("checkpoint", "WF/1@2")]
        assert ("agent", "writer") in found("writ")
        assert ("error", "failed") in found("no ink")
        entry = desk.service.audit.query_events(limit=1)[0]
        first, *_ = call.get("/v1/search", params={"q": entry.id})["items"]
        assert (first["kind"], first["title"], first["rank"]) == ("trail", entry.id, 0)
        for hit in call.get("/v1/search?q=fork")["items"]:
            assert call("GET", hit["href"]).status_code == 200
        reader = caller_for(client, desk, "read")
        assert reader.get("/v1/search", params={"q": entry.id})["items"] == []


@pytest.mark.parametrize("query", ["", "q=", "q=a&limit=0", "q=a&limit=101", "q=a&x=1", f"q={'a' * 501}"])
def test_wrong_parameters_are_refused(query, still):
    refused(still[1]("GET", f"/v1/search?{query}"), 400, "invalid_request")
