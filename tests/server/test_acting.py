"""What holds for everything that acts: a key, a scope, a store to write, a reason; once for a key."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

import holdfast
from holdfast.application.resolve import resolve
from holdfast.server.acting import one_line
from holdfast.server.etags import checkpoint_etag
from holdfast.server.settings import Settings
from holdfast.server.table import OPERATIONS
from tests.server.acts import REQUEST_ID, filled, finished, told, waiting_run
from tests.server.served import Caller, application, caller_for

ACTING = {one.name: one for one in OPERATIONS if one.acts}
#: What is sent, and to what, so that it is done.
BODIES: dict[str, dict[str, Any]] = {
    "answerQuestion": {"step": "decide", "name": "go", "granted": True},
    "cancelOperation": {},
    "changeCheckpoint": {"pinned": True},
    "createToken": {"name": "page", "scopes": ["viewer"]},
    "dropQuarantined": {},
    "exportAudit": {},
    "fork": {"new_workflow_id": "WF/2"},
    "makeRequest": {"kind": "cancel"},
    "placeHold": {"workflow_id": "WF/1"},
    "prune": {},
    "recover": {"workflow_id": "WF/1"},
    "releaseHold": {},
    "releaseQuarantined": {},
    "replay": {"workflow_id": "WF/1"},
    "revalidateQuarantined": {},
    "revokeToken": {},
    "setAside": {"checkpoint": "WF/1@2"},
    "validate": {},
    "validateCheckpoint": {},
}


class Scene:
    """A store with something for every operation to act on."""

    def __init__(self, desk: Any) -> None:
        self.desk = desk
        service = desk.service
        service.quarantine.put("WF/1", 1, "damaged")
        [report] = service.quarantine.entries()
        hold = service.holds.place(workflow_id="WF/3", reason="case 17")
        token, _ = service.tokens.create("old", ["viewer"])
        self.names = {
            "checkpoint": "WF/1@3",
            "run": "WF-ask",
            "name": report.name,
            "hold": hold.id,
            "token": token.id,
            "operation": "none",
        }

    def ask(self, call: Any, name: str, key: str, **more: Any) -> Any:
        one = ACTING[name]
        path = "/v1" + one.path
        for word, value in self.names.items():
            path = path.replace("{" + word + "}", quote(value, safe="@"))
        headers = {"Idempotency-Key": key, "X-Request-Id": REQUEST_ID}
        if one.needs_version:
            found = resolve(self.desk.kit.store, self.names["checkpoint"])
            headers["If-Match"] = checkpoint_etag(found.entry)
        body = {**BODIES[name], "reason": "because", **more}
        if name == "prune":
            body["plan_id"] = self.plan(call)
        return call(one.method, path, headers=headers, json=body)

    def plan(self, call: Any) -> str:
        if not hasattr(self, "plan_id"):
            body = {"workflow_id": "WF/1", "policy": {"keep_last": 2, "keep_days": 0}}
            self.plan_id: str = call("POST", "/v1/prune/plan", json=body).json()["id"]
        return self.plan_id


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    url = f"file:{tmp_path_factory.mktemp('acting')}/store"
    filled(url)
    waiting_run(url)
    with holdfast.open(url) as service:
        service.create_checkpoint("WF/3", {"n": 1})
    return url


def test_every_operation_that_acts_is_tried_here():
    assert set(BODIES) == set(ACTING)


def test_without_a_key_a_scope_or_a_store_to_write_nothing_acts(url):
    with application(url, retain=False) as (client, desk):
        admin, nobody = caller_for(client, desk), caller_for(client, desk, "metrics")
        scene = Scene(desk)
        reader_text = desk.service.tokens.create("reader", ["admin"])[1]
        desk.service.flush()
        before = list(desk.kit.store.files("access/")), desk.kit.store.head("WF/1")
        for name in sorted(ACTING):
            assert scene.ask(admin, name, "").status_code == 400, name
            assert scene.ask(nobody, name, "k").status_code == 403, name
            assert scene.ask(admin, name, "k", reason="").status_code == 422, name
        assert (list(desk.kit.store.files("access/")), desk.kit.store.head("WF/1")) == before
        assert not [one for one in told(desk) if one.type == "REQUEST_MADE"]
    with application(url, Settings(is_read_only=True, rate=1e6)) as (client, desk):
        scene.desk = desk
        for name in sorted(ACTING):
            refused = scene.ask(Caller(client, reader_text), name, "k")
            assert refused.status_code == 403 and refused.json()["code"] == "store_read_only", name


def test_what_is_asked_twice_under_one_key_is_told_and_done_once(tmp_path):
    for name in sorted(ACTING):
        if name == "cancelOperation":
            continue
        url = f"file:{tmp_path}/{name}"
        filled(url, 12 if name == "prune" else 4)
        if name == "answerQuestion":
            waiting_run(url)
        with application(url, retain=False) as (client, desk):
            call, scene = caller_for(client, desk, name="ann"), Scene(desk)
            if name == "makeRequest":
                scene.names["run"] = "WF/1"
            first = scene.ask(call, name, "one")
            assert 200 <= first.status_code < 300, (name, first.text)
            for row in desk.operations.rows():
                finished(desk, row.id)
            entries = told(desk)
            first_told = next(one for one in entries if one.facts.get("via") == "http")
            assert first_told.data == {"reason": "because"}, name
            assert {one.actor for one in entries} == {"ann"}, name
            if ACTING[name].needs_version:
                continue
            again = scene.ask(call, name, "one")
            assert again.headers["idempotency-replayed"] == "true", name
            assert again.status_code == first.status_code, name
            assert len(told(desk)) == len(entries), name


@pytest.mark.parametrize(
    ("reason", "line"),
    [(" a\n\tb ", "a b"), (".", "'.'"), ("\x00", "'\\x00'"), ("x" * 300, "x" * 255), ("a\u2028b", "a b")],
)
def test_a_reason_fits_on_one_line(reason, line):
    assert one_line(reason) == line
