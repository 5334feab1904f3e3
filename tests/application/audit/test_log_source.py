"""What cannot even be read is a fault like any other, and not the end of the verification."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast.application.audit.log_keeping import CHECKPOINT_FILE, VKEYS_FILE, LogKeeper
from holdfast.application.audit.log_name import ORIGIN_FILE
from holdfast.application.audit.log_source import StoreSource
from holdfast.application.audit.log_tiles import SIZE_FILE
from holdfast.domain.errors import CheckpointCorruptError, CheckpointReadError
from holdfast.domain.log_check import LogReport, Verdict, verify_log
from holdfast.domain.record import NO_WORKFLOW, Commit, Head
from holdfast.testing import FailingStore
from tests.application.logs import Desk, anchored, make_desk, outcomes


def make() -> tuple[Desk, FailingStore]:
    store = FailingStore()
    desk = make_desk(store)
    desk.tell(5)
    anchored(desk)
    return desk, store


def check(desk: Desk) -> LogReport:
    source = StoreSource(desk.store, LogKeeper(desk.kit, desk.trail))
    return verify_log(source.open(payloads=True), desk.log.trust())


def broken(*_: Any) -> Any:
    raise CheckpointCorruptError("it cannot be read", place="the disk")


def cut(lines: Iterator[bytes]) -> Iterator[bytes]:
    yield next(lines)
    broken()


@pytest.mark.parametrize(
    ("method", "change", "kind"),
    [
        ("leaves", cut, "entry"),
        ("waiting", cut, "entry"),
        ("sessions", cut, "entry"),
        ("trail_head", broken, "entry"),
        ("payload", broken, "payload"),
    ],
)
def test_what_cannot_be_read_is_a_fault(method: str, change: Callable[[Any], Any], kind: str) -> None:
    desk, store = make()
    store.alter(method, (lambda lines: cut(iter([b"x", b"y"]))) if method == "waiting" else change)
    report = check(desk)
    assert report.verdict() is Verdict.FAILED
    assert kind in {str(fault.kind) for fault in report.faults}


def test_a_tile_that_cannot_be_read_is_a_fault() -> None:
    desk, store = make()
    trust = desk.log.trust()
    source = StoreSource(desk.store, desk.keeper).open()
    store.alter("file", broken)
    report = verify_log(source, trust)
    assert {str(fault.kind) for fault in report.faults} == {"tile"}


def test_a_store_that_does_not_answer_at_all_is_no_verdict() -> None:
    desk, store = make()
    store.fail("leaves", CheckpointReadError("the line is dead"))
    with pytest.raises(CheckpointReadError, match="the line is dead"):
        check(desk)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        (SIZE_FILE, b"many\n", "what the tiles were made for cannot be read"),
        (VKEYS_FILE, b"none\n", "this is not a public key"),
        (VKEYS_FILE, None, "no key is named"),
        (ORIGIN_FILE, b"example.com/other\n", "its keys are not"),
        (CHECKPOINT_FILE, b"none\n", "signed note"),
    ],
)
def test_small_files_about_the_log_are_looked_at(name: str, data: bytes | None, problem: str) -> None:
    desk, _ = make()
    trust = desk.log.trust()
    outcomes(desk.store.commit([Commit(NO_WORKFLOW, Head(), files={name: data})]))
    report = verify_log(StoreSource(desk.store, desk.keeper).open(), trust)
    assert any(problem in fault.problem for fault in report.faults)


def test_a_session_that_is_longer_than_the_log_is_a_fault() -> None:
    desk, store = make()
    store.alter("leaves", lambda lines: iter([line for line in lines if b'"n":4' not in line]))
    report = check(desk)
    assert any("stands at entry 6, and the log at 5" in fault.problem for fault in report.faults)
