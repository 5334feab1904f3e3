from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import bootstrap
from holdfast.cli.exits import Exit
from tests.cli.conftest import Run


@pytest.fixture
def record(store: Path) -> Path:
    """The record of a session that was handed over."""
    with bootstrap.open(str(store)) as service:
        service.sessions.hand_off("s-1", summary="First.")
    return store / "sessions" / "s-1.json"


def failed(run: Run, store: Path) -> list[str]:
    told = run("doctor", "--json", "--store", store)
    names = [check for check in told.data["checks"] if check["status"] == "fail"]
    assert told.exit_code == (Exit.CORRUPT if names else Exit.DONE)
    return [f"{check['name']}: {check['detail']}" for check in names]


def test_records_that_the_trail_tells_of_are_right(run: Run, store: Path, record: Path):
    assert record.exists() and failed(run, store) == []


def test_a_record_that_was_changed_or_removed_is_found(run: Run, store: Path, record: Path):
    before = record.read_bytes()
    record.write_bytes(before.replace(b"First.", b"Other."))
    assert failed(run, store) == ["sessions: the record of a session is not what was written: s-1"]
    record.unlink()
    other = "sessions: the record of the session is not the one that its trail tells of: s-1"
    assert failed(run, store) == [other]


def test_a_record_put_back_to_an_earlier_one_is_found(run: Run, store: Path, record: Path):
    before = record.read_bytes()
    with bootstrap.open(str(store)) as service:
        service.sessions.resume_session("s-1")
    record.write_bytes(before)
    assert len(failed(run, store)) == 1


def test_a_damaged_record_without_a_trail_is_found(run: Run, store: Path, record: Path):
    (store / "sessions" / "s-9.json").write_bytes(b"nothing")
    assert [one.endswith("sessions/s-9.json") for one in failed(run, store)] == [True]


def test_a_damaged_record_that_was_erased_is_not_missed(run: Run, store: Path, record: Path):
    record.write_bytes(record.read_bytes().replace(b"First.", b"Other."))
    with bootstrap.open(str(store)) as service:
        service.erasure.workflow("WF-1", reason="it was asked for")
    assert not record.exists() and failed(run, store) == []


def test_many_are_counted(run: Run, store: Path, record: Path):
    for number in range(23):
        (store / "sessions" / f"s-{number + 100}.json").write_bytes(b"nothing")
    assert failed(run, store)[-1] == "sessions: and 3 sessions more"
