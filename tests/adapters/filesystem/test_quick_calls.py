"""System calls that keep the interpreter's lock: they do what Python's own do, and let nobody else run."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import threading
from collections.abc import Iterator

import pytest

from holdfast.adapters.file_status import identity
from holdfast.adapters.filesystem import disk as disk_module
from holdfast.adapters.filesystem import quick_calls
from holdfast.adapters.filesystem.disk import QUICK_BYTES, Disk
from holdfast.adapters.filesystem.quick_calls import Calls, PlainCalls, QuickCalls

BOTH = pytest.mark.parametrize("calls", [PlainCalls(), QuickCalls()], ids=["plain", "quick"])
ROUNDS = 2000


@pytest.fixture
def handle(tmp_path) -> Iterator[int]:
    number = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.write(number, bytes(64))
    yield number
    os.close(number)


@BOTH
def test_bytes_are_written_where_they_belong(calls: Calls, handle: int) -> None:
    assert calls.write(handle, b"a\0b", 7) == 3
    assert os.pread(handle, 12, 5) == b"\0\0a\0b" + bytes(7)


@BOTH
def test_what_cannot_be_written_says_why(calls: Calls) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(OSError) as told:
            calls.write(full, b"x", 0)
    finally:
        os.close(full)
    assert told.value.errno == errno.ENOSPC
    assert "space" in str(told.value)


@BOTH
def test_a_lock_that_is_held_is_told_as_such(calls: Calls, handle: int, tmp_path) -> None:
    other = os.open(tmp_path / "file", os.O_RDWR)
    try:
        calls.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(BlockingIOError):
            calls.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        calls.flock(handle, fcntl.LOCK_UN)
        calls.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(other)


@BOTH
def test_what_is_hurried_is_what_was_written_and_a_wish_that_fails_is_none(calls: Calls, handle: int) -> None:
    assert calls.write(handle, b"abc", 2) == 3
    calls.hurry(handle, 2, 3)
    os.fdatasync(handle)
    assert os.pread(handle, 8, 0) == b"\0\0abc\0\0\0"
    calls.hurry(-1, 2, 3)


def test_nothing_is_hurried_where_the_system_has_no_call_for_it(monkeypatch, handle: int) -> None:
    calls = QuickCalls()
    monkeypatch.setattr(calls, "_start", None)
    calls.hurry(handle, 0, 64)


@pytest.mark.parametrize(
    ("size", "at_once", "hurried"),
    [
        (1, 1, 1),
        (QUICK_BYTES, QUICK_BYTES, QUICK_BYTES),
        (QUICK_BYTES, 3, 3),
        (QUICK_BYTES, 0, None),
        (QUICK_BYTES + 1, QUICK_BYTES, None),
    ],
    ids=["a byte", "the most", "a part", "nothing", "too much"],
)
def test_the_kernel_is_asked_to_begin_with_what_was_written_at_once_and_no_more(
    monkeypatch, tmp_path, size: int, at_once: int, hurried: int | None
) -> None:
    calls, asked = QuickCalls(), list[tuple[int, ...]]()
    monkeypatch.setattr(calls, "_start", lambda *wish: asked.append(wish))
    monkeypatch.setattr(
        calls, "write", lambda handle, data, at: at_once and os.pwrite(handle, data[:at_once], at)
    )
    monkeypatch.setattr(disk_module, "quick_calls", lambda: calls)
    disk = Disk(str(tmp_path))
    number = disk.open("f", write=True, create=True)
    data = os.urandom(size)
    disk.overwrite(number, data, 7)
    assert disk.read(number, size + 9, 7) == data
    # 2 is SYNC_FILE_RANGE_WRITE alone: begin, and wait for nothing.
    assert asked == ([(number, 7, hurried, 2)] if hurried else [])
    disk.close(number)


def test_a_write_that_a_signal_broke_off_wrote_nothing(monkeypatch, handle: int) -> None:
    calls = QuickCalls()
    monkeypatch.setattr(calls, "_pwrite", lambda *_: -1)
    monkeypatch.setattr(calls, "_errno", lambda: errno.EINTR)
    assert calls.write(handle, b"x", 0) == 0


def test_without_foreign_functions_there_are_pythons_own(monkeypatch) -> None:
    quick_calls.quick_calls.cache_clear()
    monkeypatch.setitem(sys.modules, "ctypes", None)
    try:
        assert type(quick_calls.quick_calls()) is PlainCalls
    finally:
        quick_calls.quick_calls.cache_clear()
    assert type(quick_calls.quick_calls()) is PlainCalls
    monkeypatch.undo()
    quick_calls.quick_calls.cache_clear()
    assert type(quick_calls.quick_calls()) is QuickCalls


@pytest.mark.parametrize("size", [1, QUICK_BYTES, QUICK_BYTES + 1])
def test_the_door_overwrites_all_of_it(tmp_path, size: int) -> None:
    disk = Disk(str(tmp_path))
    number = disk.open("f", write=True, create=True)
    data = os.urandom(size)
    disk.overwrite(number, data, 5)
    assert disk.read(number, size + 10, 0) == bytes(5) + data
    disk.close(number)


def test_what_a_quick_write_leaves_is_written_after_it(monkeypatch, tmp_path) -> None:
    disk = Disk(str(tmp_path))
    number = disk.open("f", write=True, create=True)
    calls = quick_calls.quick_calls()
    monkeypatch.setattr(calls, "write", lambda handle, data, offset: os.pwrite(handle, data[:3], offset))
    disk.overwrite(number, b"abcdefgh", 2)
    assert disk.read(number, 20, 0) == b"\0\0abcdefgh"
    disk.close(number)


@pytest.mark.parametrize("is_patched", [True, False])
def test_whoever_replaces_what_writes_gets_all_that_is_written(
    monkeypatch, tmp_path, is_patched: bool
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    if is_patched:
        disk = Disk(str(tmp_path))
        monkeypatch.setattr(Disk, "write", refuse)
    else:
        disk = type("Full", (Disk,), {"write": refuse})(str(tmp_path))
    number = disk.open("f", write=True, create=True)
    with pytest.raises(OSError, match="full"):
        disk.overwrite(number, b"x", 0)
    disk.close(number)


class Bystander:
    """Counts how often it gets the interpreter's lock: whenever somebody lets go of it, and only then."""

    def __init__(self) -> None:
        self.count = 0
        self.ran = threading.Semaphore(0)
        self._stop = False
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._stop:
            self.count += 1
            self.ran.release()
            os.stat("/")

    def __enter__(self) -> Bystander:
        self._interval = sys.getswitchinterval()
        # Nobody is made to let go.
        sys.setswitchinterval(1000.0)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop = True
        sys.setswitchinterval(self._interval)
        self._thread.join()


def test_nobody_else_runs_meanwhile(handle: int, tmp_path) -> None:
    calls = QuickCalls()
    with Bystander() as bystander:
        before = bystander.count
        for _ in range(ROUNDS):
            calls.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            identity(str(tmp_path))
            calls.write(handle, b"x" * 3000, 0)
            calls.hurry(handle, 0, 3000)
            calls.flock(handle, fcntl.LOCK_UN)
        assert bystander.count == before


def test_control_somebody_who_lets_go_is_noticed() -> None:
    with Bystander() as bystander:
        before = bystander.count
        # Whoever waits for a lock lets go; it has run now and then before that.
        for _ in range(before + 2):
            bystander.ran.acquire()
        assert bystander.count > before
