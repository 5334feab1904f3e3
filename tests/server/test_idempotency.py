"""What is asked for under one key is done once: again, at once, after a restart, after a kill."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import msgspec
import pytest

import holdfast
from holdfast.application.holding import Holds
from holdfast.domain.access import ANSWERS, Scope
from holdfast.domain.errors import DiskFullError
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.server import idempotency
from holdfast.server.idempotency import Ledger
from holdfast.server.operation import Answer, Asked, Identity, Operation
from holdfast.server.problems import Detail, Refusal, encode, problem_of
from holdfast.server.settings import Settings
from tests.server.acts import PATIENCE_SECONDS, SECRET, filled
from tests.server.served import Caller, Limits, application, caller_for

HOLD = {"workflow_id": "WF/1", "reason": "case 17"}


@pytest.fixture(params=["file", "sqlite"])
def url(request, tmp_path):
    return filled(f"{request.param}:{tmp_path}/store", 1)


@pytest.fixture
def served(url):
    with application(url) as (client, desk):
        yield caller_for(client, desk), desk


def place(call, key="one", **more):
    return call("POST", "/v1/holds", headers={"Idempotency-Key": key}, json={**HOLD, **more})


def holds(desk):
    return desk.service.holds.listing()


def test_the_first_answer_is_given_again(served):
    call, desk = served
    first, again = place(call), place(call)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert "idempotency-replayed" not in first.headers and again.headers["idempotency-replayed"] == "true"
    assert len(holds(desk)) == 1


def test_another_key_does_it_again(served):
    call, desk = served
    assert place(call, "one").json() != place(call, "two").json()
    assert len(holds(desk)) == 2


@pytest.mark.parametrize("key", ["", " ", "a b", "\x7f", "x" * 256])
def test_a_key_is_needed(served, key):
    call, desk = served
    refused = place(call, key)
    assert refused.status_code == 400
    assert refused.json()["code"].startswith("idempotency_key_")
    assert not holds(desk)


@pytest.mark.parametrize("other", [{"reason": "case 18"}, {"workflow_id": None}])
def test_a_key_belongs_to_one_thing_to_do(served, other):
    call, desk = served
    place(call)
    refused = place(call, **other)
    assert refused.status_code == 422 and refused.json()["code"] == "idempotency_key_reused"
    elsewhere = call("POST", "/v1/validate", headers={"Idempotency-Key": "one"}, json={"reason": "case 17"})
    assert elsewhere.status_code == 422
    assert len(holds(desk)) == 1


def test_how_the_body_is_laid_out_makes_no_difference(served):
    call, desk = served
    place(call)
    headers = {"Idempotency-Key": "one", "Content-Type": "application/json"}
    body = b' { "reason" : "case 17",\n "workflow_id" : "WF\\/1" } '
    assert call("POST", "/v1/holds", headers=headers, content=body).status_code == 201
    assert len(holds(desk)) == 1


def test_a_key_belongs_to_whoever_sends_it(url):
    with application(url) as (client, desk):
        for name in ("ann", "bob"):
            assert place(caller_for(client, desk, name=name)).status_code == 201
        assert sorted(hold.placed_by or "" for hold in holds(desk)) == ["ann", "bob"]


def test_a_refusal_is_given_again(served):
    call, _ = served
    path = "/v1/holds/00000000/release"
    first, again = (
        call("POST", path, headers={"Idempotency-Key": "one"}, json={"reason": "over"}) for _ in range(2)
    )
    assert first.status_code == again.status_code == 404
    assert again.headers["idempotency-replayed"] == "true"
    assert first.json()["detail"] == again.json()["detail"]


def test_what_is_refused_before_it_begins_takes_no_key(served):
    call, _ = served
    assert place(call, reason="").status_code == 422
    assert place(call, unknown=1).status_code == 422
    assert place(call).status_code == 201


def test_of_two_at_once_one_is_done(served):
    call, desk = served
    barrier = threading.Barrier(8)

    def ask(number):
        barrier.wait(PATIENCE_SECONDS)
        return place(call).status_code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert set(answers) <= {201, 409} and 201 in answers
    assert len(holds(desk)) == 1
    assert place(call).status_code == 201


def test_the_second_is_refused_while_the_first_is_at_work(served, monkeypatch):
    call, desk = served
    began, go_on = threading.Event(), threading.Event()
    real = desk.service.holds.place

    def slow(**given):
        began.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return real(**given)

    monkeypatch.setattr(type(desk.service.holds), "place", lambda self, **given: slow(**given))
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(place, call)
        assert began.wait(PATIENCE_SECONDS)
        refused = place(call)
        go_on.set()
        assert first.result(PATIENCE_SECONDS).status_code == 201
    assert refused.status_code == 409 and refused.json()["code"] == "idempotency_key_in_flight"
    assert refused.headers["retry-after"] == "1"
    assert len(holds(desk)) == 1


def test_of_two_servers_of_one_store_one_does_it(url, monkeypatch):
    began, go_on = threading.Event(), threading.Event()
    real = Holds.place

    def slow(self, **given):
        began.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return real(self, **given)

    monkeypatch.setattr(Holds, "place", slow)
    with application(url) as (one, desk), application(url) as (other, _):
        token = desk.service.tokens.create("ann", ["admin"])[1]
        callers = [Caller(client, token) for client in (one, other)]
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(place, callers[0])
            assert began.wait(PATIENCE_SECONDS)
            refused = place(callers[1])
            go_on.set()
            made = first.result(PATIENCE_SECONDS)
        assert refused.status_code == 409 and refused.json()["code"] == "idempotency_key_in_flight"
        assert place(callers[1]).json() == made.json()
        assert len(holds(desk)) == 1


def test_an_answer_that_is_too_long_to_be_kept_is_told_as_done(served, monkeypatch):
    call, desk = served
    monkeypatch.setattr(idempotency, "_ANSWER_BYTES_MAX", 300)
    assert place(call).status_code == 201
    again = place(call)
    assert again.status_code == 409 and again.json()["code"] == "answer_not_kept"
    assert "201" in again.json()["detail"]
    assert len(holds(desk)) == 1


def test_what_takes_too_long_is_done_once_and_answered_later(url, monkeypatch):
    limits = Limits(monkeypatch)
    with application(url) as (client, desk):
        call = caller_for(client, desk)
        go_on, done = threading.Event(), threading.Event()
        real = type(desk.service.holds).place

        def slow(self, **given):
            limits.reach()
            assert go_on.wait(PATIENCE_SECONDS)
            done.set()
            return real(self, **given)

        monkeypatch.setattr(type(desk.service.holds), "place", slow)
        assert place(call).status_code == 503
        assert place(call).status_code == 409
        go_on.set()
        assert done.wait(PATIENCE_SECONDS)
        while (again := place(call)).status_code == 409:
            pass
        assert again.status_code == 201
        assert len(holds(desk)) == 1


def test_the_answer_outlives_the_server(url):
    with application(url) as (client, desk):
        token = desk.service.tokens.create("ann", ["admin"])[1]
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "one"}
        first = client.post("/v1/holds", headers=headers, json=HOLD)
    with application(url) as (client, desk):
        again = client.post("/v1/holds", headers=headers, json=HOLD)
        assert again.json() == first.json() and again.headers["idempotency-replayed"] == "true"
        assert len(holds(desk)) == 1


def test_after_a_day_a_key_is_new_and_what_was_kept_is_swept(served, monkeypatch):
    call, desk = served
    place(call)
    now = desk.kit.clock.now()
    clock = type(desk.kit.clock)
    monkeypatch.setattr(clock, "now", lambda self: now + timedelta(hours=23, minutes=59))
    assert place(call).headers["idempotency-replayed"] == "true"
    monkeypatch.setattr(clock, "now", lambda self: now + timedelta(hours=24, minutes=1))
    assert "idempotency-replayed" not in place(call).headers
    assert len(holds(desk)) == 2
    monkeypatch.setattr(clock, "now", lambda self: now + timedelta(days=4))
    place(call, "another")
    assert len(list(desk.kit.store.files(ANSWERS))) == 1


def test_answers_are_no_tokens(served, recwarn):
    call, desk = served
    place(call)
    assert [token.name for token in desk.service.tokens.listing()] == ["tester"]
    assert not [one for one in recwarn if "token" in str(one.message)]


def test_what_cannot_be_kept_is_answered_once_and_never_done_again(served, monkeypatch):
    call, desk = served
    real = type(desk.kit.store).commit
    state = {"fails": True}

    def commit(self, commits):
        names = [
            name for one in commits for name, data in one.files.items() if data and b'"answer":{' in data
        ]
        if names and state["fails"]:
            raise DiskFullError("the disk is full")
        return real(self, commits)

    monkeypatch.setattr(type(desk.kit.store), "commit", commit)
    assert place(call).status_code == 201
    state["fails"] = False
    refused = place(call)
    assert refused.status_code == 409 and refused.json()["code"] == "outcome_unknown"
    assert len(holds(desk)) == 1


def test_where_no_key_can_be_kept_nothing_is_done(served, monkeypatch):
    call, desk = served
    real = type(desk.kit.store).commit

    def commit(self, commits):
        if any(name.startswith(ANSWERS) for one in commits for name in one.files):
            raise DiskFullError("the disk is full")
        return real(self, commits)

    monkeypatch.setattr(type(desk.kit.store), "commit", commit)
    assert place(call).status_code == 507
    assert not holds(desk)


def test_a_damaged_answer_is_not_done_again(served):
    call, desk = served
    place(call)
    [name] = desk.kit.store.files(ANSWERS)
    desk.kit.store.commit([Commit(NO_WORKFLOW, Head(), files={name: b"nonsense"})])
    refused = place(call)
    assert refused.status_code == 409 and refused.json()["code"] == "outcome_unknown"
    assert len(holds(desk)) == 1


#: Serves one request, and is killed after the act and before the answer is kept, or before the act.
KILLED = """
    import os, sys
    sys.path.insert(0, {root!r})
    from tests.server.served import application
    from holdfast.application.holding import Holds
    url, token, is_after = sys.argv[1], sys.argv[2], sys.argv[3] == "after"
    real = Holds.place
    def place(self, **given):
        if is_after:
            real(self, **given)
        os.kill(os.getpid(), 9)
    Holds.place = place
    with application(url) as (client, desk):
        headers = {{"Authorization": f"Bearer {{token}}", "Idempotency-Key": "one"}}
        client.post("/v1/holds", headers=headers, json={{"workflow_id": "WF/1", "reason": "case 17"}})
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_what_a_killed_server_left_open_is_never_done_again(url, moment):
    with application(url) as (client, desk):
        token = desk.service.tokens.create("ann", ["admin"])[1]
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    script = textwrap.dedent(KILLED).format(root=root)
    killed = subprocess.run([sys.executable, "-c", script, url, token, moment], timeout=60, check=False)
    assert killed.returncode == -9
    with application(url) as (client, desk):
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": "one"}
        refused = client.post("/v1/holds", headers=headers, json=HOLD)
        assert refused.status_code == 409 and refused.json()["code"] == "outcome_unknown"
        # The trail tells what became of it, under the id that the refusal names.
        request_id = refused.json()["place"]
        types = [one.type for one in desk.service.audit.query_events() if one.correlation_id == request_id]
        assert types == ["REQUEST_MADE", "HOLD_PLACED"][: 1 if moment == "before" else 2]
        assert len(holds(desk)) == (moment == "after")


def test_an_encrypted_store_keeps_answers_sealed(tmp_path, monkeypatch):
    monkeypatch.setenv("STORE_KEY", "11" * 32)
    url, key = f"file:{tmp_path}/sealed", "env:STORE_KEY"
    with holdfast.open(url, encrypt=True, encryption_key=key) as service:
        service.create_checkpoint("WF/1", {"n": 1})
    with application(url, encryption_key=key) as (client, desk):
        call = caller_for(client, desk)
        first, again = place(call), place(call)
        assert first.json() == again.json()
        [name] = desk.kit.store.files(ANSWERS)
        assert b"case 17" not in (desk.kit.store.file(name) or b"")


NOTE = "ann-said-so-at-home"


def held(folder, *words):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path.name for path in files if any(word.encode() in path.read_bytes() for word in words)]


def note(call, key="one", checkpoint="WF%2F1@1", **more):
    headers = {"Idempotency-Key": key, "If-Match": '"0"', **more}
    body = {"reason": "she asked", "note": NOTE}
    return call("PATCH", f"/v1/checkpoints/{checkpoint}", headers=headers, json=body)


@pytest.mark.parametrize("asks", ["workflow", "subject"])
def test_an_answer_goes_with_what_is_erased_and_nothing_is_done_again(url, tmp_path, asks):
    with application(url) as (client, desk):
        call = caller_for(client, desk)
        desk.service.subjects.declare("WF/1", "ann")
        etag = call("GET", "/v1/checkpoints/WF%2F1@1").headers["etag"]
        first, refused = note(call, **{"If-Match": etag}), note(call, "two", "nobody@1")
        assert first.json()["note"] == NOTE and refused.status_code == 404
        assert held(tmp_path, NOTE)
        getattr(desk.service.erasure, asks)({"workflow": "WF/1", "subject": "ann"}[asks], reason="request 17")
        assert held(tmp_path, NOTE) == []
        for key, checkpoint, match, said in (
            ("one", "WF%2F1@1", etag, "done, and answered 200"),
            ("two", "nobody@1", '"0"', "refused, with 404"),
        ):
            again = note(call, key, checkpoint, **{"If-Match": match})
            assert (again.status_code, again.json()["code"]) == (409, "answer_not_kept")
            assert said in again.json()["detail"] and again.headers["idempotency-replayed"] == "true"
            assert note(call, key, "WF%2F1@2").status_code == 422
        told = [one for one in desk.service.audit.query_events() if one.type == "REQUEST_MADE"]
        assert len(told) == 1
    assert held(tmp_path, NOTE) == []


def test_an_answer_of_an_encrypted_store_goes_too(tmp_path, monkeypatch):
    monkeypatch.setenv("STORE_KEY", "11" * 32)
    url, key = f"file:{tmp_path}/sealed", "env:STORE_KEY"
    with holdfast.open(url, encrypt=True, encryption_key=key) as service:
        service.create_checkpoint("WF/1", {"n": 1})
    with application(url, encryption_key=key) as (client, desk):
        call = caller_for(client, desk)
        etag = call("GET", "/v1/checkpoints/WF%2F1@1").headers["etag"]
        assert note(call, **{"If-Match": etag}).json()["note"] == NOTE
        desk.service.erasure.workflow("WF/1", reason="request 17")
        again = note(call, **{"If-Match": etag})
        assert (again.status_code, again.json()["code"]) == (409, "answer_not_kept")


def test_a_damaged_answer_keeps_nothing_from_being_erased_and_is_not_done_again(served):
    call, desk = served
    place(call)
    desk.service.create_checkpoint("WF/2", {"n": 1})
    [name] = desk.kit.store.files(ANSWERS)
    desk.kit.store.commit([Commit(NO_WORKFLOW, Head(), files={name: b"nonsense"})])
    desk.service.erasure.workflow("WF/2", reason="request 17")
    refused = place(call)
    assert refused.status_code == 409 and refused.json()["code"] == "outcome_unknown"
    assert len(holds(desk)) == 1


def test_secrets_of_a_refusal_are_not_stored_and_the_first_answer_repeats_them(url, tmp_path):
    with application(url) as (client, desk):
        call = caller_for(client, desk)
        first, again = (note(call, checkpoint=SECRET, **{"X-Request-Id": SECRET[:64]}) for _ in range(2))
        assert first.status_code == again.status_code == 404
        assert SECRET in first.json()["place"]
        assert again.json()["place"] == first.json()["place"].replace(SECRET, hidden_in(desk))
        desk.service.flush()
        assert held(tmp_path, SECRET, SECRET[:64]) == []
    assert held(tmp_path, SECRET, SECRET[:64]) == []


def hidden_in(desk):
    assert desk.kit.redactor is not None
    hidden = desk.kit.redactor.text(SECRET)
    assert hidden != SECRET
    return hidden


def act_once(kit, act):
    operation = Operation("act", "POST", "/act", Scope.WRITE, "Act.", lambda desk, asked: None, acts=True)
    asked = Asked({}, None, None, Identity("ann", frozenset()), "req-1", {"idempotency-key": "one"})
    return Ledger(kit).once(operation, asked, act)


def test_an_answer_is_kept_as_it_was_but_for_the_secrets_in_its_texts(url, tmp_path):
    deep = msgspec.Raw(b"[" * 900 + b'"' + SECRET.encode() + b'"' + b"]" * 900)
    odd = {"number": 1.50, "large": 2**63, "said": 'a "quote", \\ and: \u2028', "id": "1f" * 32, "none": None}
    whole = {
        **odd,
        "sum": f"sha256:{'ab' * 32}",
        "place": f"at {SECRET}",
        "password": "no pattern",
        "deep": deep,
    }
    headers = {"ETag": '"' + "0c" * 16 + '"'}
    with application(url) as (_, desk):
        given = act_once(desk.kit, lambda: Answer(whole, 201, headers))
        again = act_once(desk.kit, place)
        hidden = hidden_in(desk)
        assert given.body is whole
        assert again.body == encode(whole).replace(SECRET.encode(), hidden.encode())
        assert (again.status, again.headers["ETag"]) == (201, headers["ETag"])
        assert held(tmp_path, SECRET) == []


def test_every_text_of_a_refusal_is_kept_without_secrets(url, tmp_path):
    refusal = Refusal(
        409,
        "no",
        f"detail {SECRET}",
        hint=f"hint {SECRET}",
        place=f"place {SECRET}",
        errors=[Detail(f"message {SECRET}", f"errors {SECRET}")],
        candidates=[f"candidate {SECRET}"],
    )

    def refuse():
        raise refusal

    with application(url) as (_, desk):
        hidden = hidden_in(desk)
        shown = []
        for _ in range(2):
            with pytest.raises(Refusal) as raised:
                act_once(desk.kit, refuse)
            shown.append(encode(problem_of(raised.value, "req-1")))
        assert shown[0].count(SECRET.encode()) == 6
        assert shown[1] == shown[0].replace(SECRET.encode(), hidden.encode())
        assert held(tmp_path, SECRET) == []


def test_a_server_that_only_reads_refuses_before_the_key(url):
    with application(url) as (client, desk):
        token = desk.service.tokens.create("ann", ["admin"])[1]
    with application(url, Settings(is_read_only=True, rate=1000)) as (client, desk):
        headers = {"Authorization": f"Bearer {token}"}
        refused = client.post("/v1/holds", headers=headers, json=HOLD)
        assert refused.status_code == 403 and refused.json()["code"] == "store_read_only"
        assert not list(desk.kit.store.files(ANSWERS))
