"""Numbers about a store over HTTP: each part alone, and all of them."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.server.api.stats import RESULTS
from tests.server.served import application, caller_for


@pytest.fixture
def call(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url) as service:
        for number in range(3):
            service.create_checkpoint(f"WF-{number}", {"n": number})
    with application(url) as (client, desk):
        yield caller_for(client, desk, "read")


@pytest.mark.parametrize("name", RESULTS)
def test_a_part_is_the_same_alone_and_with_all(call, name):
    alone, whole = call.get(f"/v1/stats/{name}"), call.get("/v1/stats")[name]
    assert type(alone) is type(whole)
    if isinstance(alone, dict):
        assert alone.keys() == whole.keys()


def test_one_run_alone_can_be_looked_at(call):
    assert call.get("/v1/stats?run=WF-1")["workflow_id"] == "WF-1"


def test_a_run_that_is_not_there_is_not_found(call):
    assert call("GET", "/v1/stats?run=WF-9").status_code == 404


@pytest.mark.parametrize("query", ["days=0", "limit=0", "limit=1001", "run=%00"])
def test_a_wrong_question_is_told(call, query):
    assert call("GET", f"/v1/stats?{query}").status_code == 400
