"""Long work: carried on in threads, watched, cancelled, bounded, told, and ended with the server."""

from __future__ import annotations

import threading

import pytest

from holdfast.domain.access import Scope
from holdfast.domain.errors import CheckpointNotFoundError
from holdfast.server import operations
from holdfast.server.operation import Asked, Identity
from holdfast.server.problems import Refusal
from holdfast.server.settings import Settings
from tests.server.acts import PATIENCE_SECONDS, REQUEST_ID, filled, over, told
from tests.server.served import application, caller_for, desk_of


@pytest.fixture
def url(tmp_path):
    return filled(f"file:{tmp_path}/store", 1)


@pytest.fixture
def desk(url):
    with desk_of(url) as desk:
        yield desk


def start(desk, work, kind="look", scope=Scope.WRITE):
    asked = Asked({}, None, None, Identity("ann", frozenset({scope})), REQUEST_ID)
    with desk.on_behalf(asked.identity, REQUEST_ID):
        answer = desk.operations.start(kind, work, asked, scope=scope, workflow_id="WF/1", unit="things")
    return desk.operations.find(answer.body.id)


def ended(running):
    running.future.result(PATIENCE_SECONDS)
    return running.row()


class Held:
    """Work that goes on until it is let go, or cancelled."""

    def __init__(self):
        self.began, self.go_on = threading.Event(), threading.Event()

    def __call__(self, progress):
        progress.step(1, 3)
        self.began.set()
        assert self.go_on.wait(PATIENCE_SECONDS)
        progress.step(2, 3)
        return {"n": 1}


def test_work_is_done_and_told_in_the_name_of_whoever_asked(desk):
    row = ended(start(desk, lambda progress: progress.step(3, 3) or [1, 2]))
    assert (row.status, row.result, row.actor, row.problem) == ("done", [1, 2], "ann", None)
    assert (row.progress.done, row.progress.total, row.progress.unit) == (3, 3, "things")
    assert row.ended_at is not None
    [entry] = told(desk)
    assert (entry.type, entry.actor, entry.outcome) == ("OPERATION_ENDED", "ann", "success")
    assert entry.facts["status"] == "done" and entry.workflow_id == "WF/1"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (CheckpointNotFoundError("gone"), 404, "checkpoint_not_found"),
        (Refusal(409, "no", "not now"), 409, "no"),
        (ZeroDivisionError(), 500, "unexpected"),
    ],
)
def test_what_fails_is_told_as_a_problem(desk, error, status, code):
    def work(progress):
        raise error

    row = ended(start(desk, work))
    assert row.status == "failed" and row.result is None
    assert (row.problem.status, row.problem.code, row.problem.request_id) == (status, code, REQUEST_ID)
    [entry] = told(desk)
    assert (entry.outcome, entry.facts["code"]) == ("failure", code)


def test_work_is_cancelled_at_its_next_step(desk):
    held = Held()
    running = start(desk, held)
    assert held.began.wait(PATIENCE_SECONDS)
    assert desk.operations.cancel(running.id).status == "running"
    held.go_on.set()
    row = ended(running)
    assert row.status == "cancelled" and row.result is None
    assert desk.operations.cancel(running.id).status == "cancelled"
    assert [one.facts["status"] for one in told(desk)] == ["cancelled"]


def test_what_waits_is_cancelled_at_once_and_what_is_over_cannot_be(desk):
    held = [Held() for _ in range(operations.AT_WORK_MAX)]
    working = [start(desk, one) for one in held]
    waiting = start(desk, lambda progress: 1)
    assert desk.operations.cancel(waiting.id).status == "cancelled"
    for one in held:
        one.go_on.set()
    assert [ended(one).status for one in working] == ["done", "done"]
    with pytest.raises(Refusal) as refused:
        desk.operations.cancel(working[0].id)
    assert refused.value.status == 409


def test_too_much_work_is_refused(desk, monkeypatch):
    monkeypatch.setattr(operations, "WAITING_MAX", 1)
    held = Held()
    for _ in range(operations.AT_WORK_MAX + 1):
        start(desk, held)
    with pytest.raises(Refusal) as refused:
        start(desk, held)
    assert (refused.value.status, refused.value.code) == (503, "too_much_work")
    held.go_on.set()


def test_only_the_last_are_remembered_but_never_one_at_work_forgotten(desk, monkeypatch):
    monkeypatch.setattr(operations, "KEPT_MAX", 2)
    held = Held()
    first = start(desk, held)
    others = [start(desk, lambda progress: 1) for _ in range(1)]
    for _ in range(4):
        ended(others[-1])
        others.append(start(desk, lambda progress: 1))
    ended(others[-1])
    assert [row.id for row in desk.operations.rows()] == [others[-1].id, first.id]
    held.go_on.set()
    ended(first)
    with pytest.raises(Refusal):
        desk.operations.find(others[0].id)


def test_a_server_that_ends_cancels_its_work_and_tells_what_did_not_end(url):
    stuck, cooperative = Held(), Held()
    with desk_of(url, Settings(shutdown_seconds=0)) as desk:
        running = start(desk, stuck)
        assert stuck.began.wait(PATIENCE_SECONDS)
    assert running.status == "failed" and running.problem.code == "server_ended"
    stuck.go_on.set()
    running.future.result(PATIENCE_SECONDS)
    assert running.status == "failed"
    with desk_of(url, Settings(shutdown_seconds=PATIENCE_SECONDS)) as desk:
        working = start(desk, cooperative)
        assert cooperative.began.wait(PATIENCE_SECONDS)
        waiting = [start(desk, cooperative) for _ in range(operations.AT_WORK_MAX)]
        cooperative.go_on.set()
    assert {one.status for one in (working, *waiting)} <= {"cancelled", "done"}
    with desk_of(url) as desk:
        entries = [one for one in told(desk) if one.type == "OPERATION_ENDED"]
        assert entries[0].facts["code"] == "server_ended" and {one.actor for one in entries} == {"ann"}
        assert len(entries) == 2 + len(waiting)


def test_work_begins_nowhere_once_the_server_ends(desk):
    desk.operations.close(0)
    with pytest.raises(Refusal) as refused:
        start(desk, lambda progress: 1)
    assert refused.value.status == 503


def test_operations_are_listed_shown_and_cancelled_over_http(url):
    with application(url) as (client, desk):
        ann, bob = (caller_for(client, desk, "operator", name=name) for name in ("ann", "bob"))
        viewer = caller_for(client, desk, "viewer")
        held = Held()
        running = start(desk, held, scope=Scope.RECOVER)
        assert held.began.wait(PATIENCE_SECONDS)
        path = f"/v1/operations/{running.id}"
        [row] = viewer.get("/v1/operations")["items"]
        assert row == viewer.get(path) and row["status"] == "running"
        assert row["progress"] == {"done": 1, "total": 3, "unit": "things"}
        assert viewer("DELETE", path, json={"reason": "enough"}).status_code == 403
        cancelled = bob("DELETE", path, json={"reason": "enough"})
        assert cancelled.status_code == 200 and cancelled.json()["id"] == running.id
        held.go_on.set()
        assert ended(running).status == "cancelled"
        asked = [one for one in desk.service.audit.query_events() if one.type == "REQUEST_MADE"]
        assert [(one.actor, one.data) for one in asked] == [("bob", {"reason": "enough"})]
        done = over(desk, ann("POST", "/v1/validate", json={"reason": "see"}))
        late = ann("DELETE", f"/v1/operations/{done['id']}", json={"reason": "enough"})
        assert late.status_code == 409 and late.json()["code"] == "operation_over"
        assert viewer("GET", "/v1/operations/nothing").status_code == 404
        assert ann("DELETE", "/v1/operations/nothing", json={"reason": "x"}).status_code == 404
        first = viewer.get("/v1/operations?limit=1")
        rest = viewer.get(f"/v1/operations?cursor={first['next_cursor']}")
        assert [one["id"] for one in first["items"] + rest["items"]] == [done["id"], running.id]
