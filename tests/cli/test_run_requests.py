from __future__ import annotations

import json
from pathlib import Path

import pytest

import holdfast
from holdfast.application.recovery.owners import own_name
from holdfast.cli.exits import Exit, Failure
from holdfast.cli.group import Call
from holdfast.cli.opening import reading
from holdfast.cli.run_requests import (
    Wish,
    ask,
    asked,
    check_open,
    check_running,
    is_heard,
    newest_sequence,
    not_running,
)
from holdfast.domain.checkpoint import CheckpointType
from holdfast.domain.run_events import REQUEST_SETTLED
from tests.cli.conftest import Run


def test_a_request_that_nobody_hears_in_time_stays(run: Run, store: Path) -> None:
    call = Call(str(store))
    with holdfast.open(str(store)) as owner:
        owner.acquire_lease("WF-1", own_name("run-1"))
        assert own_name("run-1") == check_open(call, "WF-1")
        with pytest.raises(Failure) as failure:
            ask(call, Wish("WF-1", "checkpoint", reason="now"), 0)
        assert (failure.value.code, failure.value.leave) == ("not_heard", Exit.WAITING)
        [request] = owner.requests.pending("WF-1")
        assert (request.kind, request.reason) == ("checkpoint", "now")


def test_a_request_is_taken_back_where_nobody_runs_any_more(run: Run, store: Path) -> None:
    call = Call(str(store))
    with pytest.raises(Failure) as failure:
        ask(call, Wish("WF-1", "pause"), 30)
    assert failure.value.code == "not_running"
    with holdfast.open(str(store)) as service:
        assert service.requests.pending("WF-1") == []


def test_a_request_that_is_told_in_the_journal_was_heard(run: Run, store: Path) -> None:
    call = Call(str(store))
    with asked(call, Wish("WF-1", "pause", actor="ada")) as (service, request):
        assert request.actor == "ada"
        told = {"id": request.id, "kind": "pause", "by": "ada"}
        service.append_event("WF-1", REQUEST_SETTLED, told, step_id="run")
    with holdfast.open(str(store)) as service, reading(call) as kit:
        last = kit.store.head("WF-1").event_seq
        assert is_heard(kit, request, last - 1)
        assert not is_heard(kit, request, last)
        service.requests.settle([request.id])
        assert is_heard(kit, request, last)


def test_nothing_is_asked_of_a_workflow_that_ended(run: Run, store: Path) -> None:
    call = Call(str(store))
    assert check_open(call, "WF-2") is None
    with holdfast.open(str(store)) as service:
        service.create_checkpoint("WF-2", {"small": False}, type=CheckpointType.WORKFLOW_COMPLETE)
    for check in (check_open, check_running):
        with pytest.raises(Failure) as failure:
            check(call, "WF-2")
        assert (failure.value.code, failure.value.leave) == ("workflow_ended", Exit.REFUSED)


def test_nobody_runs_is_said_with_what_to_do(run: Run, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = Call(str(store))
    assert f"`holdfast resume WF-1 --app PROGRAM --store {store}`" in not_running(call, "WF-1").hint
    monkeypatch.setenv("HOLDFAST_PROGRAM", "research.py:team")
    assert f"`holdfast resume WF-1 --store {store}`" in not_running(call, "WF-1").hint


def test_the_newest_checkpoint_is_known_by_its_number(run: Run, store: Path) -> None:
    with reading(Call(str(store))) as kit:
        assert newest_sequence(kit, "WF-1") == 3


def test_the_trail_names_whoever_asked(run: Run, store: Path) -> None:
    with asked(Call(str(store)), Wish("WF-1", "pause", actor="ada", reason="budget")):
        pass
    log = run("audit", "log", "--type", "REQUEST_MADE", "--store", store, "--json").out.splitlines()
    assert [json.loads(line)["actor"] for line in log] == ["ada"]
