"""Who asks is recognised by a token, by the key of the start, or by a browser's session."""

from __future__ import annotations

import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from starlette.testclient import TestClient

import holdfast
from holdfast.domain.access import ANSWERS, Scope
from holdfast.domain.audit_type import AuditType
from holdfast.server.app import build
from holdfast.server.desk import Desk
from holdfast.server.settings import Settings
from holdfast.server.table import OPERATIONS
from holdfast.testing import FixedClock
from tests.server.served import BASE, application, desk_of, let_no_time_pass, running


@pytest.fixture
def served(tmp_path, monkeypatch):
    let_no_time_pass(monkeypatch)
    url = f"file:{tmp_path}/store"
    with holdfast.open(url) as service:
        service.create_checkpoint("WF-1", {"a": 1})
    with application(url) as (client, desk):
        yield client, desk


def ask(client, token, **headers):
    return client.get("/v1/session", headers={"Authorization": f"Bearer {token}", **headers})


def test_nobody_is_let_in_without_a_token(served):
    client, _ = served
    response = client.get("/v1/session")
    assert response.status_code == 401
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert response.headers["content-type"] == "application/problem+json"


def test_a_token_is_told_what_it_may_do(served):
    client, desk = served
    _, text = desk.service.tokens.create("ann", ["viewer"])
    told = ask(client, text).json()
    assert (told["name"], told["scopes"], told["csrf"]) == ("ann", ["read", "state:read"], "")


@pytest.mark.parametrize("text", [b"", b"x", b"hf_00000000_" + b"A" * 43, b"hf_start_x", b"\xe9\xff"])
def test_what_is_no_token_is_not_let_in(served, text):
    client, _ = served
    assert client.get("/v1/session", headers={"Authorization": b"Bearer " + text}).status_code == 401


def test_a_token_with_one_letter_changed_is_not_let_in_and_that_is_told(served):
    client, desk = served
    _, text = desk.service.tokens.create("ann", ["viewer"])
    wrong = text[:-1] + ("A" if text[-1] != "A" else "B")
    assert ask(client, wrong).status_code == 401
    [entry] = desk.service.audit.query_events(event_types=[AuditType.AUTHENTICATION_FAILED])
    assert (entry.outcome, entry.facts["operation"]) == ("failure", "whoAmI")
    assert wrong not in str(entry)


def test_another_scheme_is_not_let_in(served):
    client, _ = served
    assert client.get("/v1/session", headers={"Authorization": "Basic eDp5"}).status_code == 401


def test_a_revoked_token_is_worth_nothing(served):
    client, desk = served
    token, text = desk.service.tokens.create("ann", ["viewer"])
    desk.service.tokens.revoke(token.id)
    assert ask(client, text).status_code == 401


def test_an_expired_token_is_worth_nothing(tmp_path):
    url = f"file:{tmp_path}/store"
    with application_with_token(url, timedelta(seconds=1)) as (client, text, desk):
        desk.kit.clock.advance(timedelta(seconds=2))
        assert ask(client, text).status_code == 401


@contextmanager
def application_with_token(url, life):
    """Serve a store whose clock stands still, with one token."""
    with holdfast.open(url):
        pass
    with desk_of(url) as opened:
        clock = FixedClock(datetime.now(UTC))
        desk = Desk(replace(opened.kit, clock=clock), opened.settings)
        _, text = desk.service.tokens.create("ann", ["viewer"], expires_at=clock.now() + life)
        yield TestClient(build(desk), base_url=BASE), text, desk


def sign_in(client, token):
    return client.post("/v1/session", json={"token": token})


def test_a_browser_signs_in_with_the_key_of_the_start_and_out_again(served):
    client, desk = served
    response = sign_in(client, desk.doorkeeper.key)
    assert response.status_code == 201
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Secure" not in cookie
    told = client.get("/v1/session").json()
    assert told["csrf"] == response.json()["csrf"] != ""
    assert client.delete("/v1/session", headers={"x-holdfast-csrf": told["csrf"]}).status_code == 204
    client.cookies.clear()
    assert client.get("/v1/session").status_code == 401


def test_a_browser_that_does_not_prove_the_page_asked_may_change_nothing(served):
    client, desk = served
    sign_in(client, desk.doorkeeper.key)
    for sent in ({}, {"x-holdfast-csrf": "guess"}):
        response = client.post("/v1/audit/verify", json={}, headers=sent)
        assert (response.status_code, response.json()["code"]) == (403, "csrf_missing")


def test_a_session_ends_with_the_token_it_began_with(served):
    client, desk = served
    token, text = desk.service.tokens.create("ann", ["viewer"])
    assert sign_in(client, text).status_code == 201
    assert client.get("/v1/session").json()["name"] == "ann"
    desk.service.tokens.revoke(token.id)
    assert client.get("/v1/session").status_code == 401


def test_a_cookie_nobody_gave_is_not_let_in(served):
    client, desk = served
    client.cookies.set(desk.doorkeeper.cookie, "guess")
    assert client.get("/v1/session").status_code == 401


def test_signing_in_with_a_wrong_token_is_refused(served):
    client, _ = served
    assert sign_in(client, "hf_00000000_" + "A" * 43).status_code == 401


def test_who_guesses_is_slowed_down(served):
    client, _ = served
    codes = [client.get("/v1/session").status_code for _ in range(10)]
    assert codes[0] == 401 and codes[-1] == 429


def test_who_asks_too_often_is_told_when_to_ask_again(tmp_path, monkeypatch):
    let_no_time_pass(monkeypatch)
    url = f"file:{tmp_path}/store"
    with holdfast.open(url):
        pass
    with application(url, Settings(rate=1)) as (client, desk):
        _, text = desk.service.tokens.create("ann", ["viewer"])
        responses = [ask(client, text) for _ in range(6)]
    assert responses[0].status_code == 200
    assert responses[-1].status_code == 429
    assert int(responses[-1].headers["retry-after"]) >= 1


def test_every_operation_refuses_every_scope_but_its_own(served):
    """Generated from the table: a token with all other scopes is not enough for any operation."""
    client, desk = served
    texts = {
        scope: desk.service.tokens.create(f"all but {scope}", set(Scope) - {scope, Scope.ADMIN})[1]
        for scope in Scope
    }
    for one in OPERATIONS:
        if one.scope is None:
            continue
        path = "/v1" + one.path.replace("{", "").replace("}", "")
        response = client.request(
            one.method, path, headers={"Authorization": f"Bearer {texts[one.scope]}", "Idempotency-Key": "k"}
        )
        assert response.status_code == 403, one.name
        if one.method != "HEAD":
            assert response.json()["code"] == "scope_missing", one.name


def test_guessing_at_the_sign_in_is_slowed_down_and_told(served):
    client, desk = served
    codes = [sign_in(client, "hf_00000000_" + "A" * 43).status_code for _ in range(20)]
    desk.service.flush()
    told = [one for one in desk.service.audit.query_events() if one.type == AuditType.AUTHENTICATION_FAILED]
    assert codes[0] == 401 and codes[-1] == 429
    assert len(told) == codes.count(401) and told[0].facts["operation"] == "signIn"


def test_who_guesses_cannot_say_to_be_somebody_else(tmp_path, monkeypatch):
    let_no_time_pass(monkeypatch)
    url = f"file:{tmp_path}/store"
    with holdfast.open(url):
        pass
    with running(url) as served:
        codes = []
        for number in range(20):
            asked = urllib.request.Request(
                f"{served.url}/v1/session", headers={"X-Forwarded-For": f"10.0.0.{number}"}
            )
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(asked, timeout=30)
            codes.append(refused.value.code)
            refused.value.close()
    assert 429 in codes


def test_whoever_can_begin_nothing_leaves_nothing_in_the_store_by_cancelling(served):
    client, desk = served
    _, text = desk.service.tokens.create("ann", ["viewer"])
    headers = {"Authorization": f"Bearer {text}", "Idempotency-Key": "k"}
    response = client.request("DELETE", "/v1/operations/none", json={"reason": "why not"}, headers=headers)
    assert (response.status_code, response.json()["code"]) == (403, "scope_missing")
    assert not list(desk.kit.store.files(ANSWERS))
