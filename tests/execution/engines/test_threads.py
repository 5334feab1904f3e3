"""Threads that no process waits for."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from holdfast.execution.engines.threads import Threads


def test_works_are_done_and_no_more_at_once_than_allowed() -> None:
    threads, meeting = Threads(3), threading.Barrier(3)
    names: set[str] = set()

    def work() -> int:
        names.add(str(threading.get_ident()))
        return meeting.wait()

    results = [threads.submit(work) for _ in range(9)]
    assert sorted(one.result() for one in results) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len(names) == 3
    threads.close()


def test_a_thread_that_is_free_is_used_again() -> None:
    threads = Threads(10)
    seen = set()
    for _ in range(5):
        seen.add(threads.submit(threading.get_ident).result())
    assert len(seen) <= 2
    threads.close()


def test_what_goes_wrong_is_told_whatever_it_is() -> None:
    threads = Threads(1)

    def fails() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.submit(fails).result()
    assert threads.submit(lambda: 1).result() == 1
    threads.close()


def test_a_work_that_was_cancelled_in_time_is_not_begun() -> None:
    threads, go_on = Threads(1), threading.Event()
    calls: list[int] = []
    first = threads.submit(go_on.wait)
    second = threads.submit(lambda: calls.append(1))
    assert second.cancel()
    go_on.set()
    assert first.result() and threads.submit(lambda: 7).result() == 7
    assert calls == []
    threads.close()


def test_after_the_end_nothing_is_begun() -> None:
    threads = Threads(1)
    threads.close()
    threads.close()
    with pytest.raises(RuntimeError, match="let go"):
        threads.submit(lambda: 1)


def test_a_process_does_not_wait_for_work_that_was_given_up() -> None:
    program = (
        "import threading\n"
        "from holdfast.execution.engines.threads import Threads\n"
        "begun = threading.Event()\n"
        "Threads(1).submit(lambda: (begun.set(), threading.Event().wait()))\n"
        "begun.wait()\n"
    )
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
