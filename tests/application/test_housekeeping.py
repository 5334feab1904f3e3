"""Keyframes after the commit: in a thread or when asked, tried again, and given up in the end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from holdfast.application.commit_queue import CommitQueue, Lineage, Ticket
from holdfast.application.housekeeping import Housekeeper, KeyframeJob
from holdfast.application.keyframes import Caption
from holdfast.application.loading import caption_of
from holdfast.application.snapshot import from_plain
from holdfast.domain.errors import CheckpointError, CheckpointWriteError, DiskFullError, StoreClosedError
from holdfast.domain.record import Commit, Head, Keyframe
from holdfast.testing import FailingStore
from tests.application.services import make_kit, make_service


class Room:
    """A store with two checkpoints, and a housekeeper for it."""

    def __init__(
        self, *, background: bool = False, after: Callable[[Caption], None] = lambda _: None
    ) -> None:
        self.store = FailingStore()
        service = make_service(self.store)
        service.create_checkpoint("W", {"a": 1})
        service.create_checkpoint("W", {"a": 2})
        self.kit = make_kit(self.store, background=background)
        self.queue = CommitQueue(self.store.commit)
        self.keeper = Housekeeper(self.kit, self.queue, after)

    def job(self, ticket: Ticket | None = None) -> KeyframeJob:
        caption = caption_of(self.store, "W", list(self.store.entries("W"))[1])
        return KeyframeJob(caption, from_plain({"context": {"a": 2}}, self.kit.packer), ticket)

    def keyframes(self) -> list[int]:
        return [keyframe.sequence for keyframe in self.store.keyframes("W")]


def test_without_a_thread_jobs_wait_until_asked_for() -> None:
    room = Room()
    room.keeper.owe(room.job())
    assert room.keyframes() == [1]
    room.keeper.run()
    assert room.keyframes() == [1, 2]
    assert not room.keeper.has_work


def test_with_a_thread_they_are_done_by_it_and_followed_up() -> None:
    done = threading.Event()
    seen: list[str] = []

    def after(caption: Caption) -> None:
        seen.append(f"{caption.workflow_id} in {threading.current_thread().name}")
        done.set()

    room = Room(background=True, after=after)
    room.keeper.owe(room.job())
    assert done.wait(10)
    room.keeper.close()
    assert seen == ["W in holdfast-housekeeper"] and room.keyframes() == [1, 2]


def test_a_keyframe_of_a_commit_that_failed_is_not_written() -> None:
    room = Room()
    failed = Ticket(Commit("W", Head()), Lineage())
    room.queue.submit(failed)
    room.keeper.owe(room.job(failed))
    room.keeper.run()
    assert failed.done and failed.error is not None
    assert room.keyframes() == [1] and not room.keeper.has_work


def test_what_fails_is_tried_again_and_given_up_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    room = Room()
    room.store.fail("put_keyframe", CheckpointWriteError("disk full"), times=2)
    room.keeper.owe(room.job())
    with caplog.at_level(logging.WARNING, "holdfast"):
        room.keeper.run()
        room.keeper.run()
    assert room.keeper.has_work and "disk full" in caplog.text
    room.keeper.run()
    assert room.keyframes() == [1, 2]
    room.store.fail("put_keyframe", times=100)
    room.keeper.owe(room.job())
    for _ in range(3):
        room.keeper.run()
    assert not room.keeper.has_work


def test_a_cause_is_told_once_until_a_keyframe_succeeds_again(caplog: pytest.LogCaptureFixture) -> None:
    room = Room()
    full, broken = DiskFullError("no space left", place="here"), CheckpointWriteError("the disk failed")

    def fail_twice(problem: CheckpointError) -> None:
        room.store.fail("put_keyframe", problem, times=6)
        room.keeper.owe(room.job())
        room.keeper.owe(room.job())
        for _ in range(3):
            room.keeper.run()
        assert not room.keeper.has_work

    with caplog.at_level(logging.WARNING, "holdfast"):
        fail_twice(full)
        fail_twice(broken)
        fail_twice(full)
        assert ["no space" in text for text in caplog.messages] == [True, False]
        room.keeper.owe(room.job())
        room.keeper.run()
        fail_twice(full)
    assert ["no space" in text for text in caplog.messages] == [True, False, True]


def test_a_thread_tries_again_what_failed_with_the_next_job(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = threading.Semaphore(0)
    room = Room(background=True, after=lambda _: followed.release())
    failed = threading.Event()
    put_keyframe = room.store.put_keyframe

    def put(workflow_id: str, keyframe: Keyframe) -> None:
        if not failed.is_set():
            failed.set()
            raise CheckpointWriteError("not now")
        put_keyframe(workflow_id, keyframe)

    monkeypatch.setattr(room.store, "put_keyframe", put)
    room.keeper.owe(room.job())
    assert failed.wait(10)
    room.keeper.owe(room.job())
    assert followed.acquire(timeout=10) and followed.acquire(timeout=10)
    room.keeper.close()
    assert not room.keeper.has_work and room.keyframes() == [1, 2]


def test_a_closed_store_ends_the_work() -> None:
    room = Room()
    room.store.fail("put_keyframe", StoreClosedError("closed"))
    room.keeper.owe(room.job())
    room.keeper.close()
    room.keeper.close()
    assert not room.keeper.has_work


def test_the_keyframe_of_what_lies_in_the_second_store_is_given_up() -> None:
    room = Room()
    ticket = Ticket(Commit("W", Head()), Lineage())
    ticket.done = ticket.is_held = True
    room.keeper.owe(room.job(ticket))
    work = []
    for intent in (object(), None):
        ticket.intent = intent
        room.keeper.run()
        work.append(room.keeper.has_work)
    assert work == [True, False] and room.keyframes() == [1]
