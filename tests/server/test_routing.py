"""From a request to its operation and back."""

from __future__ import annotations

import logging
import socket
import threading
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta
from starlette.requests import Request
from starlette.testclient import TestClient

import holdfast
from holdfast.domain.access import Scope
from holdfast.domain.errors import StoreNotFoundError
from holdfast.server import app as server_app
from holdfast.server.operation import Answer, Operation
from holdfast.server.routing import address_of
from holdfast.server.settings import Settings
from tests.application.watched import Collected
from tests.server.served import (
    BASE,
    Caller,
    Limits,
    application,
    caller_for,
    desk_of,
    let_no_time_pass,
    running,
)


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


TABLE = (
    Operation("one", "GET", "/things/{run}", Scope.READ, "One.", echo, query=Numbers),
    Operation("put", "PUT", "/things/{run}", Scope.READ, "Put.", echo, body=Sent),
    Operation("two", "GET", "/things/{run}/parts/{part}", Scope.READ, "Two.", echo, alias=True),
    Operation("fail", "GET", "/fail", Scope.READ, "Fail.", fail),
    Operation("none", "GET", "/none", Scope.READ, "None.", lambda desk, asked: Answer(None, 204)),
    Operation("text", "GET", "/text", None, "Text.", lambda desk, asked: Answer(b"hi", media_type="text/x")),
)


@contextmanager
def serving(tmp_path, monkeypatch, *table, settings=None):
    """Serve a table of its own, to a viewer."""
    url = f"file:{tmp_path}/store"
    with holdfast.open(url):
        pass
    monkeypatch.setattr(server_app, "OPERATIONS", table)
    with desk_of(url, settings or Settings(rate=1e6)) as desk:
        _, text = desk.service.tokens.create("ann", ["viewer"])
        yield Caller(TestClient(server_app.build(desk), base_url=BASE), text), desk


@pytest.fixture
def call(tmp_path, monkeypatch):
    with serving(tmp_path, monkeypatch, *TABLE) as (call, _):
        yield call


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


def test_where_no_parameter_is_known_any_is_one_too_many(call):
    problem = call("PUT", "/v1/things/a?cuont=1", json={"name": "x"}).json()
    assert (problem["status"], problem["code"]) == (400, "invalid_request")
    assert "cuont" in problem["detail"]


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


def test_what_takes_too_long_is_given_up(tmp_path, monkeypatch):
    go_on = threading.Event()

    def hang(desk, asked):
        go_on.wait(30)
        return {}

    settings = Settings(rate=1e6, request_seconds=0.2)
    with serving(tmp_path, monkeypatch, replace(TABLE[0], handle=hang), settings=settings) as (call, _):
        try:
            response = call("GET", "/v1/things/a")
        finally:
            go_on.set()
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


def test_a_name_that_is_no_text_is_refused(call):
    response = call("GET", "/v1/things/%FF")
    assert (response.status_code, response.json()["code"]) == (400, "invalid_id")


def test_an_answer_that_cannot_be_written_is_a_problem_and_is_logged(tmp_path, monkeypatch, caplog):
    torn = replace(TABLE[0], handle=lambda desk, asked: {"name": "\ud800"}, query=None)
    with serving(tmp_path, monkeypatch, torn) as (call, _), caplog.at_level(logging.ERROR, "holdfast"):
        response = call("GET", "/v1/things/a", headers={"x-request-id": "r-2"})
    assert (response.status_code, response.json()["code"]) == (500, "unexpected")
    assert "r-2" in caplog.text


def test_a_store_that_fails_at_the_door_is_a_problem(tmp_path, monkeypatch):
    def gone(text):
        raise StoreNotFoundError("it went away")

    with serving(tmp_path, monkeypatch, TABLE[0]) as (call, desk):
        monkeypatch.setattr(desk.doorkeeper, "recognise", gone)
        response = call("GET", "/v1/things/a")
    assert (response.status_code, response.json()["code"]) == (503, "store_not_found")


def test_work_that_was_given_up_keeps_its_thread_and_no_other_begins(tmp_path, monkeypatch):
    begun, go_on, limits = list[str](), threading.Event(), Limits(monkeypatch)

    def stuck(desk, asked):
        begun.append(asked.request_id)
        limits.reach()
        go_on.wait(30)
        return {}

    settings = Settings(rate=1e6, threads=1)
    with serving(tmp_path, monkeypatch, replace(TABLE[0], handle=stuck), settings=settings) as (call, desk):
        try:
            answers = [call("GET", "/v1/things/a", headers={"x-request-id": "r-0"})]
            desk.settings = replace(settings, request_seconds=0.1)
            answers += [call("GET", "/v1/things/a", headers={"x-request-id": f"r-{n}"}) for n in range(1, 4)]
        finally:
            go_on.set()
    assert {answer.status_code for answer in answers} == {503}
    assert begun == ["r-0"]


def test_who_waits_too_long_for_a_change_is_told_that_it_may_be_done(tmp_path, monkeypatch):
    go_on = threading.Event()

    def stuck(desk, asked):
        go_on.wait(30)
        return {}

    slow = replace(TABLE[1], handle=stuck, acts=True)
    with serving(tmp_path, monkeypatch, slow, settings=Settings(rate=1e6, request_seconds=0.2)) as (call, _):
        try:
            response = call("PUT", "/v1/things/a", json={"name": "x"})
        finally:
            go_on.set()
    assert response.status_code == 503 and "same Idempotency-Key" in response.json()["hint"]
    assert response.headers["connection"] == "close"


def test_a_body_that_never_comes_is_not_waited_for(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url):
        pass
    head = b"POST /v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"
    with (
        running(url, Settings(rate=1e6, request_seconds=0.2)) as served,
        socket.create_connection(("127.0.0.1", served.desk.settings.port), 30) as slow,
    ):
        slow.sendall(head)
        answer = b"".join(iter(partial(slow.recv, 4096), b""))
    assert answer.startswith(b"HTTP/1.1 503 ") and b"took_too_long" in answer


def test_head_of_what_never_ends_ends(tmp_path, monkeypatch):
    async def forever():
        while True:
            yield b"still here"

    endless = replace(TABLE[0], handle=lambda desk, asked: Answer(stream=forever(), media_type="text/x"))
    with serving(tmp_path, monkeypatch, endless) as (call, _):
        response = call("HEAD", "/v1/things/a")
    assert (response.status_code, response.content) == (200, b"")


def test_who_is_refused_again_and_again_fills_no_trail(tmp_path, monkeypatch):
    let_no_time_pass(monkeypatch)
    needs_more = replace(TABLE[0], scope=Scope.ADMIN)
    with serving(tmp_path, monkeypatch, needs_more, settings=Settings(rate=0.5)) as (call, desk):
        codes = [call("GET", "/v1/things/a").status_code for _ in range(20)]
        desk.service.flush()
        told = [one for one in desk.service.audit.query_events() if one.type == "OPERATION_REFUSED"]
    assert codes[0] == 403 and codes[-1] == 429
    assert len(told) == codes.count(403)


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff", "2001:db8::/64"),
        ("x", "x"),
    ],
)
def test_one_network_of_ipv6_is_one_address(host, told):
    assert address_of(Request({"type": "http", "client": (host, 1), "headers": []})) == told


def test_a_listing_links_to_its_next_page_until_the_last(tmp_path):
    url = f"file:{tmp_path}/store"
    with holdfast.open(url) as service:
        for number in range(5):
            service.create_checkpoint("a/b c", {"n": number})
    with application(url) as (client, desk):
        call = caller_for(client, desk, "viewer")
        answer, found = call("GET", "/v1/runs/a%2Fb%20c/events?limit=2&order=newest"), []
        found += [row["seq"] for row in answer.json()["items"]]
        while answer.links:
            answer = call("GET", answer.links["next"]["url"])
            found += [row["seq"] for row in answer.json()["items"]]
        assert found == sorted(found, reverse=True) and len(found) == 5
        assert answer.json()["next_cursor"] is None


def test_a_request_is_a_span_that_goes_on_with_that_of_whoever_asked(tmp_path):
    sent = f"00-{'a' * 32}-{'b' * 16}-01"
    url = f"file:{tmp_path}/store"
    with holdfast.open(url) as service:
        service.create_checkpoint("w", {"n": 1})
    collected = Collected()
    with desk_of(url) as desk:
        desk.kit = replace(desk.kit, tracing=collected.tracing)
        client = TestClient(server_app.build(desk), base_url=BASE)
        call = caller_for(client, desk, "viewer")
        answer = call("GET", "/v1/runs/w", headers={"traceparent": sent})
        assert call("GET", "/v1/runs/nobody", headers={"traceparent": "odd"}).status_code == 404
    first, second = collected.named("holdfast.request")
    assert first.attributes is not None and second.attributes is not None
    assert first.attributes["http.route"] == "/v1/runs/{run}"
    assert [f"{link.context.trace_id:032x}" for link in first.links] == ["a" * 32]
    assert answer.headers["traceparent"].split("-")[2] == f"{first.context.span_id:016x}"
    assert not second.links and second.attributes["error.type"] == "checkpoint_not_found"


def test_nobody_traces_unless_it_is_asked_for(call):
    assert "traceparent" not in call("GET", "/v1/things/a").headers


def test_each_request_is_one_line_for_programs_and_whoever_is_turned_away_stands_out(call, caplog):
    with caplog.at_level(logging.INFO, "holdfast"):
        call("GET", "/v1/things/a", headers={"x-request-id": "r-1"})
        call.client.get("/v1/things/a")
    known, stranger = [record for record in caplog.records if hasattr(record, "route")]
    told = (known.levelname, known.method, known.route, known.status, known.request_id, known.actor)
    assert told == ("INFO", "GET", "/things/{run}", 200, "r-1", "ann")
    assert (stranger.levelname, stranger.status, stranger.actor) == ("WARNING", 401, None)
