"""The collector of cycles is left out for a while, and comes back."""

from __future__ import annotations

import gc

import pytest

from holdfast.integrations.collecting import Uncollected


@pytest.fixture(autouse=True)
def collector():
    yield
    gc.enable()


def test_it_is_out_inside_and_back_afterwards_whatever_happens() -> None:
    with pytest.raises(KeyError), Uncollected():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled()


def test_who_switched_it_off_keeps_it_off() -> None:
    gc.disable()
    with Uncollected():
        pass
    assert not gc.isenabled()


def test_of_two_inside_the_first_that_leaves_lets_it_in() -> None:
    first, second = Uncollected(), Uncollected()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.isenabled()
    second.__exit__(None, None, None)
    assert gc.isenabled()
