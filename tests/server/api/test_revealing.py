"""What is masked is shown to whoever has the scope and says why; the trail knows before."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.bootstrap_secrets import known_secrets
from holdfast.server.settings import Settings
from tests.encrypted import OLD_KEY
from tests.server.acts import REQUEST_ID, why_told
from tests.server.reads import refused
from tests.server.served import application, caller_for

REVEAL = "/v1/checkpoints/w@1/reveal"
WHY = {"reason": "ticket 7"}


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A server that knows one of two secrets."""
    monkeypatch.setenv("APP_PASSWORD", "correct horse")
    url = f"sqlite:{tmp_path}/store"
    with holdfast.open(url) as service:
        service.create_checkpoint("w", {"password": "correct horse", "token": "t-1", "n": 1})
    with application(url) as (client, desk):
        desk.resolver_of = known_secrets("env:APP_PASSWORD")
        yield client, desk


def test_a_state_says_where_something_is_masked(served):
    client, desk = served
    node = caller_for(client, desk, "viewer").get("/v1/checkpoints/w@1/state", params={"path": "/context"})
    assert node["is_masked"] is True
    assert {one["key"]: one["is_masked"] for one in node["children"]} == {
        "password": True,
        "token": True,
        "n": False,
    }


def test_a_plan_tells_what_would_be_shown_and_the_equal_command(served):
    client, desk = served
    call = caller_for(client, desk, "viewer")
    plan = call("POST", f"{REVEAL}/plan", json={"path": "/context/password"}).json()
    assert (plan["hidden"], plan["sealed"], plan["places"]) == (1, 0, ["/context/password"])
    assert plan["refusals"] == plan["warnings"] == []
    assert plan["command"].startswith("holdfast reveal --reason=... --store=sqlite:")
    assert plan["command"].endswith(" w@1 /context/password")


def test_a_secret_is_shown_and_told_with_who_and_why(served):
    client, desk = served
    call = caller_for(client, desk, "state:reveal", name="rita")
    answer = call("POST", REVEAL, json={**WHY, "path": "/context"}, headers={"X-Request-Id": REQUEST_ID})
    shown = answer.json()
    assert shown["value"]["password"] == "correct horse"
    assert shown["value"]["token"].startswith("[REDACTED:")
    assert (shown["filled"], shown["opened"], shown["left"]) == (1, 0, ["/context/token"])
    assert answer.headers["cache-control"] == "no-store" and "etag" not in answer.headers
    [entry] = why_told(desk, "rita", "revealState", "ticket 7")
    assert (entry.type, entry.workflow_id, entry.facts["cp_seq"]) == ("SECRET_REVEALED", "w", 1)
    assert entry.data == {"pointer": "/context"}


def test_a_secret_is_kept_nowhere(served):
    """An answer that is kept for those who ask again would be a secret in the store."""
    client, desk = served
    call = caller_for(client, desk, "state:reveal")
    call("POST", REVEAL, json={**WHY, "path": "/context/password"}, headers={"Idempotency-Key": "k"})
    desk.service.flush()
    kept = [desk.kit.store.file(name) for name in desk.kit.store.files("")]
    assert not any(b"correct horse" in (data or b"") for data in kept)


@pytest.mark.parametrize("scope", ["viewer", "operator", "auditor"])
def test_nobody_sees_secrets_by_another_role(served, scope):
    client, desk = served
    refused(caller_for(client, desk, scope)("POST", REVEAL, json=WHY), 403, "scope_missing")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "invalid_request"),
        ({"reason": "  "}, 422, "invalid_request"),
        ({**WHY, "path": "context"}, 400, "invalid_id"),
        ({**WHY, "path": "/nowhere"}, 404, "checkpoint_not_found"),
        ({**WHY, "path": "/context/n"}, 422, "cannot_reveal"),
    ],
)
def test_what_cannot_be_shown_is_refused(served, body, status, code):
    client, desk = served
    refused(caller_for(client, desk)("POST", REVEAL, json=body), status, code)


def test_without_a_resolver_nothing_is_shown_and_the_plan_says_so(served):
    client, desk = served
    desk.resolver_of = None
    call = caller_for(client, desk)
    assert "--resolver" in call("POST", f"{REVEAL}/plan", json={}).json()["refusals"][0]
    refused(call("POST", REVEAL, json=WHY), 422, "cannot_reveal")


def test_a_resolver_that_fails_is_told_and_its_words_are_not(served):
    client, desk = served

    def failing(pointer, placeholder):
        raise OSError("correct horse")

    desk.resolver_of = lambda kit: failing
    problem = refused(caller_for(client, desk)("POST", REVEAL, json=WHY), 503, "key_unavailable")
    assert "horse" not in str(problem)


@pytest.mark.parametrize(
    ("settings", "more", "status", "code"),
    [
        (Settings(is_read_only=True, rate=1e6), {}, 403, "store_read_only"),
        (Settings(rate=1e6), {"audit": False}, 422, "invalid_config"),
    ],
)
def test_what_cannot_be_told_is_not_shown(tmp_path, monkeypatch, settings, more, status, code):
    monkeypatch.setenv("APP_PASSWORD", "correct horse")
    url = f"sqlite:{tmp_path}/store"
    with holdfast.open(url) as service:
        service.create_checkpoint("w", {"password": "correct horse"})
        token = service.tokens.create("ann", ("admin",))[1]
    with application(url, settings, **more) as (client, desk):
        desk.resolver_of = known_secrets("env:APP_PASSWORD")
        headers = {"Authorization": f"Bearer {token}"}
        plan = client.post(f"{REVEAL}/plan", json={}, headers=headers).json()
        assert len(plan["refusals"]) == 1
        answer = client.post(REVEAL, json=WHY, headers=headers)
        refused(answer, status, code)
        assert "correct horse" not in answer.text


def test_a_value_of_a_person_is_opened_with_the_keys_that_the_server_has(tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_KEY", OLD_KEY.hex())
    url, key = f"sqlite:{tmp_path}/store", {"encryption_key": "env:TEST_KEY"}
    with holdfast.open(url, encrypt=True, **key) as service:
        service.create_checkpoint("w", {"who": holdfast.Personal("alice", "alice@example.org")})
    with application(url, **key) as (client, desk):
        call = caller_for(client, desk)
        node = call.get("/v1/checkpoints/w@1/state", params={"path": "/context"})
        [child] = node["children"]
        assert (child["kind"], child["is_masked"]) == ("personal", True) and "alice@" not in str(node)
        shown = call("POST", REVEAL, json={**WHY, "path": "/context/who"}).json()
        assert (shown["value"], shown["opened"]) == ("alice@example.org", 1)
