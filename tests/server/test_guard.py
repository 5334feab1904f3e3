"""Every request passes the guard: names, origins, sizes, and what every answer carries."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.server.settings import Settings
from tests.server.served import application, caller_for


@pytest.fixture
def served(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url) as service:
        service.create_checkpoint("WF-1", {"a": 1})
    with application(url, Settings(hosts=frozenset({"ops.example"}), body_bytes=1_000)) as (client, desk):
        yield client, caller_for(client, desk)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "", "[::2]"])
def test_a_name_that_is_not_this_servers_is_turned_away(served, host):
    client, _ = served
    response = client.get("/healthz", headers={"host": host})
    assert (response.status_code, response.json()["code"]) == (421, "wrong_host")


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8787", "OPS.example:443"])
def test_its_own_names_are_known_with_any_port(served, host):
    client, _ = served
    assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_another_page_may_not_act(served, origin):
    _, call = served
    response = call("POST", "/v1/audit/verify", json={}, headers={"origin": origin})
    assert (response.status_code, response.json()["code"]) == (403, "wrong_origin")


def test_a_page_of_this_server_may_act(served):
    _, call = served
    response = call("POST", "/v1/audit/verify", json={}, headers={"origin": "http://127.0.0.1:8787"})
    assert response.status_code == 200


def test_a_body_that_says_it_is_too_large_is_refused(served):
    _, call = served
    response = call("POST", "/v1/session", json={"token": "x" * 2_000})
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")


def test_a_body_that_does_not_say_how_large_it_is_is_counted(served):
    _, call = served
    pieces = (b" " * 400 for _ in range(4))
    response = call("POST", "/v1/session", content=pieces, headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")


@pytest.mark.parametrize("path", ["/healthz", "/v1/session", "/nowhere", "/v1/openapi.json"])
def test_every_answer_carries_what_keeps_browsers_safe(served, path):
    _, call = served
    headers = call("GET", path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-request-id"].startswith("req-")
    assert "server" not in headers


def test_a_request_keeps_the_id_it_comes_with(served):
    client, _ = served
    assert client.get("/healthz", headers={"x-request-id": "a-1"}).headers["x-request-id"] == "a-1"


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "a\tb"])
def test_what_is_no_id_is_replaced(served, given):
    client, _ = served
    told = client.get("/healthz", headers={"x-request-id": given}).headers["x-request-id"]
    assert told.startswith("req-")


def test_an_origin_that_is_none_is_another(served):
    client, _ = served
    response = client.post("/v1/session", json={}, headers={"origin": "http://["})
    assert (response.status_code, response.json()["code"]) == (403, "wrong_origin")
