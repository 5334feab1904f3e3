"""Validating and pinning over HTTP."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import holdfast
from holdfast.application.resolve import resolve
from holdfast.domain.telemetry import FoundBy
from holdfast.server.acting import begin
from holdfast.server.etags import checkpoint_etag
from tests.application.watched import Heard
from tests.damage import Spoiler
from tests.server.acts import REQUEST_ID, over, told, why_told
from tests.server.served import application, caller_for

WHY = "before the audit"
PATH = "/v1/checkpoints/WF%2F1@3"


def act(call, method, path, headers=None, **body):
    sent = {"X-Request-Id": REQUEST_ID, **(headers or {})}
    return call(method, path, headers=sent, json={"reason": WHY, **body})


def test_a_sound_checkpoint_is_valid(served):
    call, desk = served
    answer = act(call, "POST", f"{PATH}/validate")
    assert answer.json() == {"id": "WF/1@3", "valid": True, "problems": [], "notes": []}
    [checked] = why_told(desk, "ann", "validateCheckpoint", WHY)
    assert (checked.type, checked.outcome) == ("CHECKPOINT_VALIDATED", "success")


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_a_damaged_checkpoint_is_not(tmp_path, kind):
    spoiler = Spoiler(kind, tmp_path)
    spoiler.fill()
    spoiler.spoil_record(3)
    with application(spoiler.url) as (client, desk):
        call = caller_for(client, desk, "operator", name="ann")
        answer = act(call, "POST", "/v1/checkpoints/WF@3/validate").json()
        assert not answer["valid"] and answer["problems"]
        done = over(desk, act(call, "POST", "/v1/validate", deep=True))
        result = done["result"]
        assert done["status"] == "done" and not result["valid"]
        assert result["problem_count"] >= 3 and result["checkpoints"] == 5
        assert "WF@3" in {one["place"] for one in result["problems"]}


def test_damage_is_counted_wherever_it_is_found(tmp_path):
    spoiler = Spoiler("file", tmp_path)
    spoiler.fill()
    spoiler.spoil_record(3)
    with application(spoiler.url) as (client, desk):
        call = caller_for(client, desk, "operator", name="ann")
        watched = Heard()
        desk.kit = replace(desk.kit, observer=watched)
        done = over(desk, act(call, "POST", "/v1/validate"))
        assert watched.failures == [FoundBy.VALIDATION] * done["result"]["problem_count"]
        watched.failures.clear()
        assert call("GET", "/v1/checkpoints/WF@3/state").status_code == 409
        assert watched.failures == [FoundBy.RESTORE]


def test_everything_is_validated_as_an_operation(served):
    call, desk = served
    desk.service.create_checkpoint("WF/2", {"n": 1})
    done = over(desk, act(call, "POST", "/v1/validate", deep=True))
    assert done["result"]["valid"] and done["result"]["checkpoints"] == 7 and done["result"]["events"] == 13
    assert done["progress"] == {"done": 2, "total": 2, "unit": "workflows"}
    others = why_told(desk, "ann", "validate", WHY)
    assert {one.type for one in others} == {"CHECKPOINT_VALIDATED", "OPERATION_ENDED"}
    shallow = over(desk, act(call, "POST", "/v1/validate", workflow_id="WF/2"))
    assert (shallow["result"]["checkpoints"], shallow["result"]["events"]) == (1, 0)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/v1/checkpoints/WF%2F1@99/validate", {}, 404),
        ("POST", "/v1/checkpoints/WF%2F1@event:2/validate", {}, 400),
        ("POST", "/v1/validate", {"workflow_id": "nobody"}, 404),
        ("POST", "/v1/validate", {"workflow_id": "a\x01"}, 400),
        ("PATCH", "/v1/checkpoints/nobody", {"pinned": True}, 404),
        ("PATCH", PATH, {}, 422),
        ("PATCH", PATH, {"pinned": True, "label": "x"}, 422),
    ],
)
def test_what_is_not_there_or_not_as_described_is_refused(served, method, path, body, status):
    call, desk = served
    assert act(call, method, path, **body).status_code == status
    assert told(desk) == []


def test_a_checkpoint_is_pinned_and_unpinned_by_its_version(served):
    call, desk = served
    etag = checkpoint_etag(resolve(desk.kit.store, "WF/1@3").entry)
    pinned = act(call, "PATCH", PATH, {"If-Match": etag}, pinned=True)
    assert pinned.status_code == 200 and pinned.json()["pinned"] is True
    assert resolve(desk.kit.store, "WF/1@3").entry.pinned
    why_told(desk, "ann", "changeCheckpoint", WHY)
    stale = act(call, "PATCH", PATH, {"If-Match": etag}, pinned=False)
    assert stale.status_code == 412
    for header in ("*", f"W/{pinned.headers['etag']}", '"other"'):
        assert act(call, "PATCH", PATH, {"If-Match": header}, pinned=False).status_code == 412
    headers = {"If-Match": f'"other", {pinned.headers["etag"]}'}
    assert act(call, "PATCH", PATH, headers, pinned=False).json()["pinned"] is False
    assert not resolve(desk.kit.store, "WF/1@3").entry.pinned


def test_labels_and_a_note_are_given_by_the_version_and_told(served):
    call, desk = served
    etag = call("GET", PATH).headers["etag"]
    noted = act(call, "PATCH", PATH, {"If-Match": etag}, labels=["release", "checked"], note="a plan")
    assert noted.status_code == 200, noted.text
    assert (noted.json()["labels"], noted.json()["note"]) == (["checked", "release"], "a plan")
    why_told(desk, "ann", "changeCheckpoint", WHY)
    shown = call("GET", PATH, headers={"If-None-Match": etag})
    version = noted.headers["etag"].removesuffix('"')
    assert shown.status_code == 200 and shown.headers["etag"].startswith(version)
    assert not etag.startswith(version)
    assert (shown.json()["labels"], shown.json()["note"]) == (["checked", "release"], "a plan")
    assert shown.json()["noted_by"] == "ann"
    bare = caller_for(call.client, desk, "read").get(PATH)
    assert (bare["labels"], bare["note"], bare["noted_by"]) == (["checked", "release"], "", None)
    assert act(call, "PATCH", PATH, {"If-Match": etag}, note="other").status_code == 412
    kept = act(call, "PATCH", PATH, {"If-Match": shown.headers["etag"]}, pinned=True, labels=[])
    assert (kept.json()["pinned"], kept.json()["labels"], kept.json()["note"]) == (True, [], "a plan")


def together(monkeypatch, many):
    """Let requests go on to their change only once so many have matched the version."""
    matched = threading.Barrier(many)

    def begin_together(*given):
        matched.wait(30)
        return begin(*given)

    monkeypatch.setattr("holdfast.server.api.upkeep.begin", begin_together)


@pytest.mark.parametrize(
    "change",
    [
        lambda number: {"note": f"note {number}"},
        lambda number: {"pinned": True},
        lambda number: {"note": f"note {number}", "labels": [f"l{number}"], "pinned": True},
    ],
    ids=["note", "pin", "both"],
)
def test_of_all_who_change_one_version_at_once_exactly_one_does(served, monkeypatch, change):
    call, desk = served
    etag = call("GET", PATH).headers["etag"]
    together(monkeypatch, 4)
    callers = [caller_for(call.client, desk, "operator", name=f"caller-{number}") for number in range(4)]

    def changed(number):
        return act(callers[number], "PATCH", PATH, {"If-Match": etag}, **change(number))

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(changed, range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]
    [(number, won)] = [(at, answer) for at, answer in enumerate(answers) if answer.status_code == 200]
    for name, value in change(number).items():
        assert won.json()[name] == value
    shown = call("GET", PATH)
    assert shown.headers["etag"].startswith(won.headers["etag"].removesuffix('"'))
    assert shown.json()["note"] == won.json()["note"]


def test_a_label_that_was_given_later_is_listed_by(served):
    call, desk = served
    desk.service.annotate("WF/1@2", labels=["release"])
    found = call.get("/v1/checkpoints?run=WF%2F1&label=release")["items"]
    assert [row["id"] for row in found] == ["WF/1@2"]
    assert call.get("/v1/checkpoints?run=WF%2F1&label=other")["items"] == []
    assert call.get("/v1/checkpoints?label=release&count=true") == {
        "items": found,
        "next_cursor": None,
        "is_complete": True,
        "total": 1,
    }
    assert call.get("/v1/checkpoints?label=other")["items"] == []


@pytest.mark.parametrize(
    "body",
    [{"labels": ["a\nb"]}, {"labels": [""]}, {"labels": ["x"] * 21}, {"note": "x" * 2_001}, {"note": 3}],
)
def test_what_cannot_be_said_is_refused(served, body):
    call, _ = served
    etag = call("GET", PATH).headers["etag"]
    assert act(call, "PATCH", PATH, {"If-Match": etag}, **body).status_code == 422
    assert call.get(PATH)["labels"] == []


def test_a_change_has_to_say_what_it_changes(served):
    call, desk = served
    missing = act(call, "PATCH", PATH, pinned=True)
    assert missing.status_code == 428 and missing.json()["code"] == "version_missing"
    assert not resolve(desk.kit.store, "WF/1@3").entry.pinned


def test_what_somebody_else_has_is_not_changed(url):
    with holdfast.open(url) as owner, application(url) as (client, desk):
        call = caller_for(client, desk, "operator", name="ann")
        owner.acquire_lease("WF/1", "elsewhere", ttl_seconds=300)
        etag = checkpoint_etag(resolve(desk.kit.store, "WF/1@3").entry)
        refused = act(call, "PATCH", PATH, {"If-Match": etag}, pinned=True)
        assert refused.status_code == 409 and refused.json()["code"] == "lease_held"
