"""A fork waits for whoever is in the middle of an import, and the child can import."""

from __future__ import annotations

import os
import threading

from holdfast.application.fork_gate import GATE


def test_a_fork_waits_until_nobody_is_inside() -> None:
    inside, out = threading.Event(), threading.Event()
    done: list[str] = []

    def work() -> None:
        with GATE:
            inside.set()
            out.wait()
            done.append("thread")

    thread = threading.Thread(target=work)
    thread.start()
    inside.wait()
    threading.Timer(0.05, out.set).start()
    child = os.fork()
    if child == 0:
        # The child may go in: the lock is its own now.
        os._exit(0 if done == ["thread"] and GATE.acquire(blocking=False) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    thread.join()
    with GATE:
        pass
