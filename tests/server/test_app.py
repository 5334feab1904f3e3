"""The whole server as one application."""

from __future__ import annotations

import pytest

import holdfast
from tests.server.served import application


@pytest.fixture
def client(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url):
        pass
    with application(url) as (client, _):
        yield client


def test_the_description_is_there_for_everybody(client):
    assert client.get("/v1/openapi.json").json()["openapi"] == "3.1.0"


def test_the_front_door_leads_to_the_dashboard(client):
    for path in ("/", "/ui"):
        response = client.get(path, follow_redirects=False)
        assert (response.status_code, response.headers["location"]) == (307, "/ui/")


@pytest.mark.parametrize(
    "path", ["/nowhere", "/v1", "/v1/nowhere", "/ui/nowhere", "/ui/../app.py", "/ui/%2e%2e/app.py"]
)
def test_what_is_not_there_is_told_as_a_problem(client, path):
    response = client.get(path)
    assert response.status_code == 404
    assert response.headers["content-type"] == "application/problem+json"
