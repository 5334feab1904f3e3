"""What watches a server asks it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import holdfast
from holdfast.domain.errors import StoreLockedError, StoreNotFoundError
from holdfast.server.health import ready
from holdfast.server.settings import Settings
from tests.server.served import application, caller_for, desk_of, let_no_time_pass


@pytest.fixture
def url(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url) as service:
        service.create_checkpoint("WF-1", {"a": 1})
    return url


def test_it_lives_and_is_ready_without_a_token(url):
    with application(url) as (client, _):
        assert client.get("/healthz").json() == {"live": True}
        told = client.get("/readyz")
        assert (told.status_code, told.json()["ready"]) == (200, True)


def test_a_disk_that_is_nearly_full_is_not_ready(url):
    with desk_of(url) as desk:
        told = ready(replace(desk.kit, space=lambda: (10**9, 1)))
        assert not told["ready"] and not told["checks"]["disk"]["ok"]
        assert ready(replace(desk.kit, space=lambda: None))["ready"]


def test_a_store_that_does_not_answer_is_not_ready(url, monkeypatch):
    with application(url) as (client, desk):

        def locked():
            raise StoreLockedError("somebody else has it")

        monkeypatch.setattr(desk.kit.store, "workflows", locked, raising=False)
        told = client.get("/readyz")
        assert (told.status_code, told.json()["checks"]["store"]["ok"]) == (503, False)


def test_numbers_need_their_scope(url):
    with application(url) as (client, desk):
        assert client.get("/metrics").status_code == 401
        assert caller_for(client, desk, "viewer")("GET", "/metrics").status_code == 403
        told = caller_for(client, desk, "metrics", name="prometheus")("GET", "/metrics")
        assert told.status_code == 200 and "holdfast_" in told.text


def test_numbers_of_a_store_that_fails_at_the_door_are_a_problem(url, monkeypatch):
    def gone(credential):
        raise StoreNotFoundError("it went away")

    with application(url) as (client, desk):
        monkeypatch.setattr(desk.doorkeeper, "recognise", gone)
        response = client.get("/metrics", headers={"Authorization": "Bearer x"})
    assert (response.status_code, response.json()["code"]) == (503, "store_not_found")


def test_who_guesses_tokens_for_the_numbers_is_slowed_down_and_told_of(url, monkeypatch):
    let_no_time_pass(monkeypatch)
    with application(url, Settings(failure_rate=1.0)) as (client, desk):
        statuses = [
            client.get("/metrics", headers={"Authorization": "Bearer hf_no"}).status_code for _ in range(4)
        ]
        assert statuses[:2] == [401, 401] and 429 in statuses
        desk.service.flush()
        told = desk.service.audit.query_events(event_types=["AUTHENTICATION_FAILED"])
        assert told and {entry.facts["operation"] for entry in told} == {"metrics"}
