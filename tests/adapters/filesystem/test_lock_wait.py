"""Whoever waits long for a lock is told who has it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.adapters.filesystem import lock_wait
from holdfast.adapters.filesystem.disk import Disk
from tests.process.stopping import wait_until_stopped

HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
"""


class Heard(logging.Handler):
    """Keeps what was said, and lets others wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.spoken = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self.spoken.set()


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    monkeypatch.setattr(lock_wait, "PATIENCE_SECONDS", 0.05)
    handler, logger = Heard(), logging.getLogger("holdfast")
    logger.addHandler(handler)
    lock_wait.onlooker.cache_clear()
    yield handler
    logger.removeHandler(handler)
    lock_wait.onlooker.cache_clear()


@pytest.mark.parametrize("is_stopped", [True, False])
def test_who_has_a_lock_for_long_is_named_once(tmp_path: Path, heard: Heard, is_stopped: bool) -> None:
    disk = Disk(str(tmp_path))
    handle = disk.open("lock", write=True, create=True)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None and holder.stdout is not None
    holder.stdout.readline()
    if is_stopped:
        os.kill(holder.pid, signal.SIGSTOP)
        wait_until_stopped(holder.pid)
    waiting = threading.Thread(target=disk.lock, args=(handle,))
    waiting.start()
    assert heard.spoken.wait(30)
    if is_stopped:
        os.kill(holder.pid, signal.SIGCONT)
    holder.communicate(b"\n")
    waiting.join()
    [said] = heard.said
    assert f"file:{tmp_path} is waited for" in said and f": {holder.pid}" in said
    assert (f"`kill -CONT {holder.pid}`" in said) is is_stopped
    # It was taken, and waits for nobody.
    assert disk.lock(handle)
    disk.close(handle)


def test_where_nobody_can_tell_who_has_it_the_wait_is_told_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "free"
    path.write_bytes(b"")
    handle = os.open(path, os.O_RDONLY)
    said = lock_wait._said(handle, "/store")
    os.close(handle)
    assert said.endswith("another process has had its lock for 5 s")
    assert lock_wait._said(handle, "/store") == said
    assert not lock_wait._is_stopped("0")


def test_where_no_thread_can_be_started_a_lock_is_waited_for_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cannot(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    watch, taken = lock_wait.Onlooker(), list[str]()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", cannot)
        watch.wait(0, "/store", lambda: taken.append("first"))
    assert taken == ["first"] and watch._thread is None and watch._waits == {}


def test_a_wait_in_the_middle_of_another_forgets_only_itself() -> None:
    watch, seen = lock_wait.Onlooker(), list[str]()

    def outer() -> None:
        watch.wait(0, "/inner", lambda: None)
        seen.extend(root for _, _, root in watch._waits.values())

    watch.wait(0, "/outer", outer)
    assert seen == ["/outer"] and watch._waits == {}
