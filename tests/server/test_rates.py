"""How often one may ask."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.server.rates import Rates


class Watch:
    """A clock that is moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@given(st.lists(st.floats(0, 3), min_size=1, max_size=200), st.integers(1, 20))
def test_nobody_is_let_through_more_often_than_the_rate_and_one_burst(waits, rate):
    watch = Watch()
    rates, passed = Rates(rate, watch), 0
    for wait in waits:
        watch.now += wait
        passed += not rates.wait_seconds("ann")
    assert passed <= 2 * rate + rate * watch.now + 1e-6


@given(st.integers(1, 20))
def test_who_waits_as_long_as_told_is_let_through(rate):
    watch = Watch()
    rates = Rates(rate, watch)
    while not (wait := rates.wait_seconds("ann")):
        pass
    watch.now += wait + 1e-9
    assert not rates.wait_seconds("ann")


def test_one_does_not_wait_for_another():
    rates = Rates(1, Watch())
    assert [bool(rates.wait_seconds("ann")) for _ in range(3)] == [False, False, True]
    assert not rates.wait_seconds("bob")


def test_those_who_asked_long_ago_are_forgotten_first():
    rates = Rates(1, Watch())
    for number in range(10_050):
        rates.wait_seconds(str(number))
    assert len(rates._buckets) == 10_000


def test_who_may_ask_less_than_once_a_second_may_ask_at_all():
    now = [0.0]
    rates = Rates(0.1, lambda: now[0])
    assert rates.wait_seconds("ann") == 0
    wait = rates.wait_seconds("ann")
    assert wait == pytest.approx(10)
    now[0] += wait
    assert rates.wait_seconds("ann") == 0
