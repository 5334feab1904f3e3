"""While a process forks nobody is inside, and nobody waits for ever."""

from __future__ import annotations

import threading

from holdfast.adapters.sqlite.gate import Gate

TIMEOUT_SECONDS = 30


def test_shutting_waits_for_who_is_inside_and_opening_lets_in_again() -> None:
    gate, order = Gate(), []
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with gate:
            inside.set()
            assert leave.wait(TIMEOUT_SECONDS)
            order.append("left")

    def come_later() -> None:
        with gate:
            order.append("came later")

    def shut() -> None:
        gate.shut()
        order.append("shut")

    worker = threading.Thread(target=work)
    worker.start()
    assert inside.wait(TIMEOUT_SECONDS)
    forker = threading.Thread(target=shut)
    forker.start()
    leave.set()
    worker.join(TIMEOUT_SECONDS)
    forker.join(TIMEOUT_SECONDS)
    late = threading.Thread(target=come_later)
    late.start()
    order.append("opened")
    gate.open()
    late.join(TIMEOUT_SECONDS)
    assert order == ["left", "shut", "opened", "came later"]


def test_who_forks_from_inside_does_not_wait_for_itself() -> None:
    gate = Gate()
    with gate:
        gate.shut()
        gate.open()


def test_only_while_nobody_is_inside_what_is_to_be_done_then_is_done() -> None:
    gate, done = Gate(), []
    gate.shut(lambda: done.append("outside"))
    gate.open()
    with gate:
        gate.shut(lambda: done.append("inside"))
        gate.open()
    assert done == ["outside"]


def test_who_is_inside_may_enter_again_while_it_is_shut() -> None:
    gate, shut = Gate(), threading.Event()

    def fork() -> None:
        gate.shut()
        shut.set()
        gate.open()

    forker = threading.Thread(target=fork)
    with gate:
        forker.start()
        with gate:
            pass
        assert not shut.is_set()
    assert shut.wait(TIMEOUT_SECONDS)
    forker.join(TIMEOUT_SECONDS)


def test_of_two_forks_the_last_opens() -> None:
    gate, passed = Gate(), threading.Event()

    def work() -> None:
        with gate:
            passed.set()

    gate.shut()
    gate.shut()
    gate.open()
    worker = threading.Thread(target=work)
    worker.start()
    assert not passed.is_set()
    gate.open()
    worker.join(TIMEOUT_SECONDS)
    assert passed.is_set()
