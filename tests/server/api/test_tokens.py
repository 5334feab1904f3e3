"""Tokens over HTTP: made, shown once, listed, revoked."""

from __future__ import annotations

import pytest

from tests.server.acts import REQUEST_ID, told, why_told
from tests.server.served import Caller, application, caller_for

WHY = "the new dashboard"


@pytest.fixture
def served(url):
    with application(url) as (client, desk):
        yield caller_for(client, desk, name="ann"), desk


def create(call, key=None, **more):
    headers = {"X-Request-Id": REQUEST_ID, **({"Idempotency-Key": key} if key else {})}
    body = {"name": "page", "scopes": ["viewer"], "reason": WHY, **more}
    return call("POST", "/v1/tokens", headers=headers, json=body)


def test_a_token_is_made_and_works(served):
    call, desk = served
    made = create(call)
    assert made.status_code == 201
    token, text = made.json()["token"], made.json()["text"]
    assert (token["name"], token["scopes"], token["created_by"]) == ("page", ["read", "state:read"], "ann")
    assert Caller(call.client, text).get("/v1/session")["name"] == "page"
    [entry] = why_told(desk, "ann", "createToken", WHY)
    assert entry.type == "TOKEN_CREATED" and text not in str(told(desk))
    assert token in call.get("/v1/tokens")["items"]


def test_the_text_is_shown_once_and_kept_nowhere(served, tmp_path):
    call, desk = served
    first, again = create(call, "one").json(), create(call, "one").json()
    assert again == {"token": first["token"], "text": None}
    desk.service.flush()
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert files and not any(first["text"].encode() in data for data in files)


def test_a_revoked_token_is_worth_nothing(served):
    call, _ = served
    made = create(call).json()
    path = f"/v1/tokens/{made['token']['id']}"
    gone = call("DELETE", path, json={"reason": "it leaked"})
    assert gone.json() == {"id": made["token"]["id"]}
    assert Caller(call.client, made["text"])("GET", "/v1/session").status_code == 401
    assert call("DELETE", path, json={"reason": "it leaked"}).status_code == 404


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"scopes": ["everything"]}, 422),
        ({"scopes": []}, 422),
        ({"name": ""}, 422),
        ({"name": "a\x01"}, 400),
        ({"expires_at": "2020-01-01T00:00:00Z"}, 422),
        ({"expires_at": "2099-01-01T00:00:00"}, 422),
        ({"expires_at": "soon"}, 422),
    ],
)
def test_what_cannot_be_a_token_is_refused(served, more, status):
    call, desk = served
    assert create(call, **more).status_code == status
    assert [token.name for token in desk.service.tokens.listing()] == ["ann"]


def test_a_token_may_expire(served):
    call, _ = served
    token = create(call, expires_at="2099-01-01T00:00:00+01:00").json()["token"]
    assert token["expires_at"] == "2098-12-31T23:00:00.000000Z" and token["has_expired"] is False


@pytest.mark.parametrize("token", ["nothing", "..%2Fx", "%00", "A"])
def test_what_is_no_token_is_not_found(served, token):
    call, _ = served
    assert call("DELETE", f"/v1/tokens/{token}", json={"reason": WHY}).status_code == 404


def test_tokens_are_for_whoever_administers(url):
    with application(url) as (client, desk):
        call = caller_for(client, desk, "operator", "auditor")
        assert call("GET", "/v1/tokens").status_code == 403
        assert create(call).status_code == 403
