"""From a request to its operation and back."""

from __future__ import annotations

import logging
import threading
from dataclasses import replace
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta
from starlette.testclient import TestClient

import holdfast
from holdfast.domain.access import Scope
from holdfast.server import app as server_app
from holdfast.server.operation import Answer, Operation
from holdfast.server.settings import Settings
from tests.server.served import BASE, Caller, desk_of


class Numbers(msgspec.Struct):
    count: Annotated[int, Meta(ge=1, le=9)] = 3
    word: str = "a"


class Sent(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    count: int = 0


def echo(desk, asked):
    return {
        "run": asked.path.get("run"),
        "query": asked.query,
        "body": asked.body,
        "who": asked.identity.name,
    }


def fail(desk, asked):
    raise RuntimeError("a secret thing broke")


HOLD = threading.Event()


def hang(desk, asked):
    HOLD.wait(30)
    return {}


TABLE = (
    Operation("one", "GET", "/things/{run}", Scope.READ, "One.", echo, query=Numbers),
    Operation("put", "PUT", "/things/{run}", Scope.READ, "Put.", echo, body=Sent),
    Operation("two", "GET", "/things/{run}/parts/{part}", Scope.READ, "Two.", echo, alias=True),
    Operation("fail", "GET", "/fail", Scope.READ, "Fail.", fail),
    Operation("hang", "GET", "/hang", Scope.READ, "Hang.", hang),
    Operation("none", "GET", "/none", Scope.READ, "None.", lambda desk, asked: Answer(None, 204)),
    Operation("text", "GET", "/text", None, "Text.", lambda desk, asked: Answer(b"hi", media_type="text/x")),
)


@pytest.fixture
def call(tmp_path, monkeypatch):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url):
        pass
    monkeypatch.setattr(server_app, "OPERATIONS", TABLE)
    with desk_of(url, Settings(rate=1e6, request_seconds=0.2)) as desk:
        _, text = desk.service.tokens.create("ann", ["viewer"])
        yield Caller(TestClient(server_app.build(desk), base_url=BASE), text)


@pytest.mark.parametrize(
    ("step", "name"), [("a", "a"), ("a%2Fb", "a/b"), ("a%20b", "a b"), ("%C3%A9", "\u00e9"), ("a%3Fb", "a?b")]
)
def test_a_name_is_matched_before_it_is_decoded(call, step, name):
    assert call.get(f"/v1/things/{step}")["run"] == name


@pytest.mark.parametrize(
    "path", ["/v1/things", "/v1/things/", "/v1/things/a/b", "/things/a", "/v1/things//parts/b"]
)
def test_what_is_no_path_is_not_found(call, path):
    response = call("GET", path)
    assert (response.status_code, response.json()["code"]) == (404, "no_such_path")


def test_an_alias_is_known_without_the_version(call):
    assert call("GET", "/things/a/parts/b").status_code == 200


def test_another_method_is_told_which_there_are(call):
    response = call("DELETE", "/v1/things/a")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, PUT")


def test_parameters_are_read_by_their_types(call):
    assert call.get("/v1/things/a?count=5&word=7")["query"] == {"count": 5, "word": "7"}


@pytest.mark.parametrize(
    "query", ["count=0", "count=x", "count=1.5", "count=", "cuont=1", "count=1&count=2", "count=10"]
)
def test_a_wrong_parameter_is_named(call, query):
    response = call("GET", f"/v1/things/a?{query}")
    problem = response.json()
    assert (response.status_code, problem["code"]) == (400, "invalid_request")
    assert query.partition("=")[0] in problem["detail"]


def test_a_body_is_read_by_its_type(call):
    response = call("PUT", "/v1/things/a", json={"name": "x"})
    assert response.json()["body"] == {"name": "x", "count": 0}


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b'{"name": 1}', 422),
        (b"{}", 422),
        (b"", 422),
        (b'{"name": "x", "more": 1}', 422),
        (b"[]", 422),
        (b"{", 400),
        (b"\xff", 400),
        (b'{"name":' + b"[" * 100_000, 422),
    ],
)
def test_a_wrong_body_is_refused(call, content, status):
    response = call("PUT", "/v1/things/a", content=content, headers={"content-type": "application/json"})
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"


def test_another_media_type_is_refused(call):
    response = call("PUT", "/v1/things/a", content=b"name=x", headers={"content-type": "text/plain"})
    assert response.status_code == 415


def test_a_failure_of_ours_tells_no_secret_and_is_logged(call, caplog):
    with caplog.at_level(logging.ERROR, "holdfast"):
        response = call("GET", "/v1/fail", headers={"x-request-id": "r-1"})
    assert response.status_code == 500
    assert "secret" not in response.text and response.json()["request_id"] == "r-1"
    assert "r-1" in caplog.text


def test_what_takes_too_long_is_given_up(call):
    try:
        response = call("GET", "/v1/hang")
    finally:
        HOLD.set()
    assert (response.status_code, response.json()["code"]) == (503, "took_too_long")
    assert response.headers["retry-after"]


def test_head_answers_as_get_does_without_a_body(call):
    response = call("HEAD", "/v1/things/a")
    assert (response.status_code, response.content) == (200, b"")


def test_nothing_is_sent_where_there_is_nothing(call):
    response = call("GET", "/v1/none")
    assert (response.status_code, response.content) == (204, b"")


def test_an_open_operation_asks_for_no_token(call):
    response = call.client.get("/v1/text")
    assert (response.text, response.headers["content-type"]) == ("hi", "text/x; charset=utf-8")


def test_a_server_that_only_reads_changes_nothing(tmp_path, monkeypatch):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url) as service:
        _, text = service.tokens.create("ann", ["admin"])
    acting = replace(TABLE[1], acts=True)
    monkeypatch.setattr(server_app, "OPERATIONS", (acting,))
    with desk_of(url, Settings(is_read_only=True)) as desk:
        call = Caller(TestClient(server_app.build(desk), base_url=BASE), text)
        response = call("PUT", "/v1/things/a", json={"name": "x"})
    assert (response.status_code, response.json()["code"]) == (403, "store_read_only")
