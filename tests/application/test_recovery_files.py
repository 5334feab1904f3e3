"""The two files for whoever looks into a store at night."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest

from holdfast.adapters.memory import MemoryStore
from holdfast.application.recovery_files import FAILURES, FAILURES_MAX, LATEST, LATEST_MAX, RecoveryFiles
from holdfast.application.resolve import resolve
from holdfast.domain.errors import CheckpointWriteError, StateTooLargeError
from holdfast.testing import FailingStore, FixedClock
from tests.application.resumptions import Worker, make_worker
from tests.encrypted import encrypted_store, service


def files_of(worker: Worker) -> RecoveryFiles:
    return worker.resumption.files


def failure(worker: Worker, name: str = "W@1", message: str = "it went wrong") -> dict[str, Any]:
    return files_of(worker).failure_of(resolve(worker.kit.store, name), "resume", "ValueError", message, 1)


def test_the_latest_workflows_come_first_with_their_last_checkpoint() -> None:
    worker = make_worker()
    for workflow_id in ("V", "W", "V"):
        worker.service.create_checkpoint(workflow_id, {"at": workflow_id}, stage_id="s", force=True)
    files_of(worker).record(["V", "W"])
    latest = files_of(worker).latest()
    assert [(item["workflow_id"], item["sequence"]) for item in latest] == [("V", 2), ("W", 1)]
    newest = next(worker.kit.store.entries("V", newest_first=True))
    assert latest[0] == {
        "workflow_id": "V",
        "stage_id": "s",
        "agent_id": None,
        "sequence": 2,
        "checkpoint_id": newest.uuid,
        "type": "stage_complete",
        "status": "active",
        "retry_count": 0,
        "updated_at": newest.timestamp,
    }
    data = worker.kit.store.file(LATEST)
    assert data is not None and json.loads(data)["workflows"] == latest


def test_only_so_many_are_kept() -> None:
    worker = make_worker(clock=FixedClock(step=timedelta(seconds=1)))
    for number in range(LATEST_MAX + 5):
        worker.service.create_checkpoint(f"W{number}", {"n": number})
    files_of(worker).rebuild()
    latest = files_of(worker).latest()
    assert len(latest) == LATEST_MAX
    assert latest[0]["workflow_id"] == f"W{LATEST_MAX + 4}"


def test_a_file_that_did_not_change_is_not_written_again() -> None:
    store = FailingStore()
    worker = make_worker(store)
    worker.service.create_checkpoint("W", {"n": 1})
    files_of(worker).record(["W"])
    store.calls.clear()
    files_of(worker).record(["W"])
    assert store.calls["commit"] == 0


def test_a_workflow_without_a_checkpoint_is_left_out() -> None:
    worker = make_worker()
    worker.service.append_event("W", "STEP")
    files_of(worker).record(["W"])
    assert files_of(worker).latest() == []


def test_failures_are_kept_in_order_up_to_a_number() -> None:
    worker = make_worker()
    worker.service.create_checkpoint("W", {"n": 1}, agent_id="mercury")
    lines = b"".join(b'{"n": %d}\n' % number for number in range(FAILURES_MAX))
    worker.service._engine.trail.commit((), {FAILURES: lines})
    files_of(worker).record(["W"], failure(worker, message="x" * 1000))
    failures = files_of(worker).failures()
    assert len(failures) == FAILURES_MAX
    assert failures[0] == {"n": 1}
    last = failures[-1]
    assert (last["workflow_id"], last["sequence"], last["agent_id"]) == ("W", 1, "mercury")
    assert (last["handler"], last["error_type"], last["retry_count"]) == ("resume", "ValueError", 1)
    assert len(last["error_message"]) < 1000


def test_views_that_were_damaged_or_deleted_are_made_anew() -> None:
    worker = make_worker()
    worker.service.create_checkpoint("W", {"n": 1})
    deep = b"[" * 100_000
    strange = (
        b'{"workflows": [{"workflow_id": [1], "updated_at": "2026"}, {"workflow_id": "V", "updated_at": 1}]}'
    )
    for damaged in (b"no json", b"[]", b'{"workflows": [1]}', b'{"workflows": [{}]}', strange, deep, None):
        worker.service._engine.trail.commit((), {LATEST: damaged, FAILURES: damaged and b"\xff{" + damaged})
        assert files_of(worker).latest() == files_of(worker).failures() == []
        files_of(worker).record(["W"], failure(worker))
        assert [item["workflow_id"] for item in files_of(worker).latest()] == ["W"]
        assert len(files_of(worker).failures()) == 1


def test_failures_that_are_nested_without_end_are_none() -> None:
    worker = make_worker()
    worker.service._engine.trail.commit((), {FAILURES: b"[" * 100_000})
    assert files_of(worker).failures() == []


def test_two_writers_lose_nothing_of_each_other() -> None:
    store = MemoryStore()
    workers = [make_worker(store) for _ in range(4)]
    workers[0].service.create_checkpoint("W", {"n": 1})

    def write(worker: Worker) -> None:
        for _ in range(5):
            files_of(worker).record(["W"], failure(worker))

    threads = [threading.Thread(target=write, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(files_of(workers[0]).failures()) == 20


def test_a_journal_that_is_too_small_gets_a_shorter_file() -> None:
    store = FailingStore()
    worker = make_worker(store)
    worker.service.create_checkpoint("W", {"n": 1})
    lines = b"".join(b'{"n": %d}\n' % number for number in range(400))
    worker.service._engine.trail.commit((), {FAILURES: lines})
    store.fail("commit", StateTooLargeError("too large"), times=2)
    files_of(worker).record(["W"], failure(worker))
    assert len(files_of(worker).failures()) == FAILURES_MAX // 4


def test_a_store_that_cannot_be_written_keeps_nobody_from_working(caplog: pytest.LogCaptureFixture) -> None:
    store = FailingStore()
    worker = make_worker(store)
    worker.service.create_checkpoint("W", {"n": 1})
    store.fail("commit", CheckpointWriteError("no"))
    files_of(worker).record(["W"], failure(worker))
    assert "are behind" in caplog.text


def test_what_is_erased_can_be_taken_out() -> None:
    worker = make_worker()
    for workflow_id in ("V", "W"):
        worker.service.create_checkpoint(workflow_id, {"n": 1})
        files_of(worker).record([workflow_id], failure(worker, f"{workflow_id}@1"))
    files = files_of(worker).without(["V"])
    assert set(files) == {LATEST, FAILURES}
    worker.service._engine.trail.commit((), files)
    assert [item["workflow_id"] for item in files_of(worker).latest()] == ["W"]
    assert [item["workflow_id"] for item in files_of(worker).failures()] == ["W"]
    assert files_of(worker).without(["V"]) == {}
    worker.service._engine.trail.commit((), {FAILURES: b"who knows"})
    assert files_of(worker).without(["V"]) == {FAILURES: None}


def test_erasing_a_workflow_takes_it_out() -> None:
    worker = make_worker()
    worker.service.create_checkpoint("W", {"n": 1})
    files_of(worker).record(["W"], failure(worker, message="about a person"))
    worker.service.erasure.workflow("W", reason="asked for")
    assert files_of(worker).latest() == files_of(worker).failures() == []


def test_an_encrypted_store_does_not_show_what_went_wrong() -> None:
    store = encrypted_store()
    with service(store) as opened:
        engine = opened._engine
        opened.create_checkpoint("W", {"n": 1})
        files = RecoveryFiles(engine.kit, engine.trail)
        found = resolve(store, "W@1")
        files.record(["W"], files.failure_of(found, "resume", "ValueError", "about a person", 1))
        assert files.failures()[0]["error_message"] == "about a person"
        data = store.file(FAILURES)
        assert data is not None and b"about a person" not in data
        assert json.loads(store.file(LATEST) or b"")["workflows"][0]["workflow_id"] == "W"


def test_a_store_that_is_only_read_is_left_alone() -> None:
    class Shut(FailingStore):
        is_shut = False

        @property
        def read_only(self) -> bool:
            return self.is_shut

    store = Shut()
    worker = make_worker(store)
    worker.service.create_checkpoint("W", {"n": 1})
    store.is_shut = True
    files_of(worker).record(["W"])
    assert store.file(LATEST) is None
